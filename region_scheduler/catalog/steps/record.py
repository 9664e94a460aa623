"""Records one change that a script would make: its id, what it is based on, whom it concerns."""

from __future__ import annotations

from region_scheduler.catalog.steps import document


def main() -> None:
    """Derive the change's id from the step and from the ids it builds on."""
    inputs, upstream = document.read()
    based_on = {name: outputs["id"] for name, outputs in upstream.items() if "id" in outputs}
    change_id = document.digest_of([document.place_of(inputs), based_on])[:16]
    document.say(f"stand-in: change {change_id} of {document.place_of(inputs)}")
    document.write({"id": change_id, "based_on": based_on})


if __name__ == "__main__":
    main()
