"""`explain`: why is a task not running?"""

from __future__ import annotations

from region_scheduler.cli.hints import Hints
from region_scheduler.cli.options import Json, Region, StateDir, TaskText
from region_scheduler.cli.output import Output


def explain(
    task: TaskText, region: Region = None, state_dir: StateDir = None, as_json: Json = False
) -> None:
    """Say why a task is not running, and when it probably will.

    Its place in the order is known to its own region only: `--region` asks there.
    """
    from region_scheduler.cli.session import session
    from region_scheduler.cli.views import answer_words
    from region_scheduler.domain.states import TaskState
    from region_scheduler.operations.explain import explain as explain_task
    from region_scheduler.operations.runs import find_task

    with session(state_dir, region) as opened:
        found = find_task(opened.graph, task)
        is_here = found.region == opened.settings.region
        backlog, queue = (opened.ports.backlog, opened.ports.queue) if is_here else (None, None)
        told = explain_task(opened.graph, found, opened.clock.now(), backlog, queue)
    value = {
        "task": found.id,
        "name": found.spec.name,
        "state": found.state,
        "reasons": [{"kind": one.kind, "text": one.text} for one in told.reasons],
        "starts_in_s": told.starts_in_s,
        "late_in_s": told.late_in_s,
    }
    soon = told.starts_in_s
    late = "" if told.late_in_s is None else f", nine times of ten within {told.late_in_s:.0f} s"
    when = [] if soon is None else [f"probably starts in {soon:.0f} s{late}"]
    nothing = ["nothing is known to keep it"]
    lines = [one.text for one in told.reasons] or nothing
    if found.state is TaskState.AWAITING:
        command = Hints(state_dir).command(*answer_words(found.run, found))
        lines.append(f"waits for you: {command}")
    Output(as_json).result(
        value, lambda: [f"{found.spec.name} is {found.state.value}", *lines, *when]
    )
