"""Publishes the zone: says what it is and that it is open for workloads."""

from __future__ import annotations

from region_scheduler.catalog.steps import document


def main() -> None:
    """Write the entry that a catalogue of zones would list."""
    inputs, _ = document.read()
    document.say(f"zone {inputs['zone']} of {inputs['tenant']} is open")
    document.write(
        {
            "zone": inputs["zone"],
            "tenant": inputs["tenant"],
            "regions": inputs["regions"],
            "environment": inputs["parameters"]["environment"],
            "contact": inputs["parameters"]["contact"],
        }
    )


if __name__ == "__main__":
    main()
