"""Print how many of ArangoDB's own answers the engine gives, and which it does not.

python -m tests.conformance
"""

from __future__ import annotations

import sys

from tests.conformance import aql_runner, http_runner
from tests.conformance.engine_sender import engine_sender
from tests.conformance.ratchet import known_misses, misses


def main() -> int:
    """Run all cases; return 1 if one misses that is not known to, or a known one passes."""
    surprises = 0
    for kind, runner in (("aql", aql_runner), ("http", http_runner)):
        cases = runner.load_cases()
        found = misses(cases, runner.run_case, engine_sender())
        known = known_misses(kind)
        lines = [f"{kind}: {len(cases) - len(found)} of {len(cases)} cases pass"]
        for name, differences in found.items():
            lines.append(f"  {name}: {known.get(name, 'not known')}")
            lines += [f"    {difference}" for difference in differences]
        sys.stdout.write("\n".join(lines) + "\n")
        surprises += len(found.keys() ^ known.keys())
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
