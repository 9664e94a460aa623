"""/_admin/faults: the fault control over HTTP; only there when the engine allows it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from region_scheduler.embedded.arango.control import FaultControl, RestorePoint
from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.faults import Fault, FaultKind
from region_scheduler.embedded.arango.http.call import Call
from region_scheduler.embedded.arango.http.message import Response, answer
from region_scheduler.embedded.arango.http.router import Table
from region_scheduler.embedded.arango.regions import Region


def show(call: Call) -> Response:
    """GET: the regions' state, and the rules in force."""
    _require(call)
    regions = call.engine.regions
    rules = call.engine.network.rules.listed()
    return answer(
        200,
        regions={name: _shown(regions.region(name)) for name in regions.names},
        rules={str(number): asdict(rule) for number, rule in rules.items()},
    )


def _shown(region: Region) -> dict[str, Any]:
    return {
        "lag_s": region.lag_s,
        "shard_lag_s": {f"{name}/{shard}": s for (name, shard), s in region.shard_lag_s.items()},
        "is_frozen": region.is_frozen,
        "rtt_s": region.rtt_s,
        "is_cut": region.is_cut,
        "is_refusing": region.is_refusing,
        "is_deposed": region.old_leader is not None,
    }


def change_region(call: Call, name: str) -> Response:
    """PATCH: change lag_s, shard_lag_s, rtt_s, is_frozen, is_cut, is_refusing or is_deposed."""
    _require(call)
    if name not in call.engine.regions.names:
        raise ArangoError(404, f"unknown region '{name}'")
    wishes = call.object()
    control = FaultControl(call.engine)
    try:
        for attribute, value in wishes.items():
            _change(control, name, attribute, value, wishes)
    except (TypeError, ValueError) as error:
        raise ArangoError(10, str(error)) from error
    return answer(200, **_shown(call.engine.regions.region(name)))


def _change(
    control: FaultControl, name: str, attribute: str, value: Any, wishes: dict[str, Any]
) -> None:
    match attribute:
        case "lag_s":
            control.set_lag(name, float(value))
        case "shard_lag_s":
            for shard, lag_s in dict(value).items():
                collection, _, number = shard.rpartition("/")
                control.set_lag(name, float(lag_s), collection, int(number))
        case "rtt_s":
            control.set_rtt(name, float(value))
        case "is_frozen":
            (control.freeze if value else control.thaw)(name)
        case "is_cut" if value:
            control.cut(name, is_refusing=bool(wishes.get("is_refusing")))
        case "is_cut":
            control.heal(name)
        case "is_deposed":
            (control.depose if value else control.heal_leader)(name)
        case "is_refusing":
            pass  # read together with is_cut
        case _:
            raise ValueError(f"a region has no {attribute}")


def inject(call: Call) -> Response:
    """POST: put a rule in force."""
    _require(call)
    body = call.object()
    try:
        fault = Fault(**{**body, "kind": FaultKind(str(body.get("kind")))})
    except (TypeError, ValueError) as error:
        raise ArangoError(10, str(error)) from error
    return answer(201, number=call.engine.network.rules.add(fault))


def withdraw(call: Call, number: str) -> Response:
    """DELETE: end a rule, or `all`."""
    _require(call)
    if number == "all":
        call.engine.network.rules.clear()
    elif number.isdigit():
        call.engine.network.rules.withdraw(int(number))
    else:
        raise ArangoError(404)
    return answer(200)


def mark(call: Call, what: str) -> Response:
    """POST /points: note the state of now, to be restored later."""
    _require_points(call, what)
    points = call.engine.restore_points
    number = max(points, default=0) + 1
    points[number] = FaultControl(call.engine).mark()
    return answer(201, number=number)


def restore(call: Call, what: str, number: str) -> Response:
    """PUT /points/N: set all documents back to that state; the point is used up."""
    FaultControl(call.engine).restore(_taken_point(call, what, number))
    return answer(200)


def forget(call: Call, what: str, number: str) -> Response:
    """DELETE /points/N: drop a restore point."""
    FaultControl(call.engine).forget(_taken_point(call, what, number))
    return answer(200)


def _taken_point(call: Call, what: str, number: str) -> RestorePoint:
    _require_points(call, what)
    point = call.engine.restore_points.pop(int(number), None) if number.isdigit() else None
    if point is None:
        raise ArangoError(404, f"there is no restore point '{number}'")
    return point


def _require_points(call: Call, what: str) -> None:
    _require(call)
    if what != "points":
        raise ArangoError(404)


def _require(call: Call) -> None:
    if not call.engine.has_fault_control:
        raise ArangoError(404, "unknown path '/_admin/faults'")


TABLE: Table = {
    ("GET", 0): show,
    ("POST", 0): inject,
    ("PATCH", 1): change_region,
    ("DELETE", 1): withdraw,
    ("POST", 1): mark,
    ("PUT", 2): restore,
    ("DELETE", 2): forget,
}
