"""Bundles what the steps before delivered: one digest each, and one over all of them."""

from __future__ import annotations

from region_scheduler.catalog.steps import document


def main() -> None:
    """Digest every predecessor's outputs, and bind them to the controls they are evidence of."""
    inputs, upstream = document.read()
    receipts = {name: document.digest_of(outputs) for name, outputs in sorted(upstream.items())}
    bundle = {
        "of": document.place_of(inputs),
        "controls": inputs["controls"],
        "kept_months": inputs["parameters"]["evidence_months"],
        "receipts": receipts,
    }
    document.say(f"{len(receipts)} receipts for {len(inputs['controls'])} controls")
    document.write({**bundle, "bundle": document.digest_of(bundle)})


if __name__ == "__main__":
    main()
