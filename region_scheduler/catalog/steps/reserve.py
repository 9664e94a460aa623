"""Cuts the zone's address space into one block a region, non-overlapping and always the same."""

from __future__ import annotations

from ipaddress import IPv4Network
from itertools import islice

from region_scheduler.catalog.steps import document


def blocks(cidr: str, regions: list[str]) -> dict[str, str]:
    """Return an equal share of the network for each region, in the order given.

    Args:
        cidr: Network to cut.
        regions: At least one; one share more is left over unless their count is a power of two.
    """
    bits = (len(regions) - 1).bit_length()
    shares = IPv4Network(cidr).subnets(prefixlen_diff=bits)
    return {
        region: str(share)
        for region, share in zip(regions, islice(shares, len(regions)), strict=True)
    }


def main() -> None:
    """Reserve, and hand the blocks to the network steps."""
    inputs, _ = document.read()
    reserved = blocks(inputs["parameters"]["cidr"], inputs["regions"])
    for region, block in reserved.items():
        document.say(f"{region}: {block}")
    document.write({"blocks": reserved, "cidr": inputs["parameters"]["cidr"]})


if __name__ == "__main__":
    main()
