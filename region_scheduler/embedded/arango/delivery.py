"""What becomes of one request on its way to the engine and back."""

from __future__ import annotations

from dataclasses import dataclass

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.http.message import Response, failure


@dataclass(frozen=True, slots=True)
class Delivery:
    """The fate of a request, decided before it is looked at.

    Attributes:
        wait_s: How long it travels to where it is executed.
        is_executed: Whether it gets there.
        late_s: If set: it is executed that much later, when its sender has lost the connection.
        answer: What its sender is told instead of the engine's answer.
        is_answered: Whether its sender is told anything.
        is_hanging: Whether its sender waits in vain instead of losing the connection.
        answer_wait_s: How long the answer travels.
        is_disturbed: Whether its writes meet conflicts that have no winner.
    """

    wait_s: float = 0.0
    is_executed: bool = True
    late_s: float | None = None
    answer: Response | None = None
    is_answered: bool = True
    is_hanging: bool = False
    answer_wait_s: float = 0.0
    is_disturbed: bool = False


def refusal(number: int, message: str = "") -> Response:
    """Return ArangoDB's answer for an error of the cluster."""
    return failure(ArangoError(number, message))
