"""Names the short-lived identity that the zone's workers would use; issues no credential."""

from __future__ import annotations

from region_scheduler.catalog.steps import document

_LIFETIME_S = 3600


def main() -> None:
    """Derive the subject from the zone."""
    inputs, _ = document.read()
    subject = f"zone:{inputs['tenant']}/{inputs['zone']}"
    document.say(f"stand-in: {subject} would get credentials for {_LIFETIME_S} s")
    document.write({"id": document.digest_of(subject)[:16], "subject": subject})


if __name__ == "__main__":
    main()
