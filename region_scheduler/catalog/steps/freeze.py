"""Hashes the whole request: what is approved is this hash and nothing else."""

from __future__ import annotations

from region_scheduler.catalog.steps import document


def main() -> None:
    """Hash parameters and regions."""
    inputs, _ = document.read()
    request = {name: inputs[name] for name in ("tenant", "zone", "regions", "parameters")}
    plan_hash = document.digest_of(request)
    document.say(f"plan hash {plan_hash}")
    document.write({"plan_hash": plan_hash})


if __name__ == "__main__":
    main()
