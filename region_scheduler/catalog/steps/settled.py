"""Tells whether the world shows what was written, as clouds do some polls later."""

from __future__ import annotations

from region_scheduler.catalog.steps import document


def main() -> int:
    """Return 0 from the poll on that `polls_until_true` names, before that the code "not yet".

    The count is kept beside this attempt's outputs, so that a new attempt polls anew.
    """
    inputs, upstream = document.read()
    count = document.outputs_path().with_name("polls")
    polls = int(count.read_text()) + 1 if count.exists() else 1
    count.write_text(str(polls))
    if polls < inputs["polls_until_true"]:
        document.say(f"poll {polls}: not visible yet")
        return document.NOT_YET
    document.say(f"poll {polls}: visible")
    seen = sorted(outputs["id"] for outputs in upstream.values() if "id" in outputs)
    probe = document.digest_of(document.place_of(inputs))[:16]
    document.write({"id": f"{inputs['step']}-{probe}", "polls": polls, "seen": seen})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
