"""How the API says no."""

from __future__ import annotations

from typing import Any

from fastapi.responses import JSONResponse


def refusal(status: int, code: str, message: str) -> JSONResponse:
    """Return the answer to a request that is not carried out.

    Args:
        status: 4xx or 5xx.
        code: For programs.
        message: For people.
    """
    content: dict[str, Any] = {"error": {"code": code, "message": message}}
    return JSONResponse(content, status)
