"""The links between the regions of a stack and its graph store, which can be cut."""

from __future__ import annotations

import http.client
import json
from base64 import b64encode
from urllib.parse import urlsplit

from region_scheduler.errors import Unavailable
from region_scheduler.local.stack import Stack

_ANSWER_S = 10.0
_AUTHORIZATION = f"Basic {b64encode(b'root:').decode()}"


class Links:
    """Cuts and mends the links of a stack whose engine was started `distant` (`local.parts`).

    Args:
        stack: It runs an engine of its own.
    """

    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    def cut(self, region: str) -> None:
        """Cut a region off: nothing that it asks of the leader arrives, its follower gets no news.

        Raises:
            Unavailable: The engine did not do it.
        """
        self._change(region, is_cut=True)

    def heal(self, region: str) -> None:
        """End a cut; half of what was on its way arrives now, though nobody waits for it.

        Raises:
            Unavailable: The engine did not do it.
        """
        self._change(region, is_cut=False)

    def _change(self, region: str, *, is_cut: bool) -> None:
        address = urlsplit(self._stack.engine_url(region)).netloc
        link = http.client.HTTPConnection(address, timeout=_ANSWER_S)
        try:
            body = json.dumps({"is_cut": is_cut})
            headers = {"authorization": _AUTHORIZATION}
            link.request("PATCH", f"/_admin/faults/{region}", body, headers)
            answer = link.getresponse()
            said = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as refused:
            raise Unavailable(dependency="engine", detail=str(refused)) from refused
        finally:
            link.close()
        if answer.status >= http.client.BAD_REQUEST:
            raise Unavailable(dependency="engine", detail=f"{answer.status}: {said[:200]}")
