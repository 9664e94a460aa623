"""The conflict fraction over schedulers and staleness, after the figure in the paper on Omega.

Schwarzkopf, Konwinski, Abd-El-Malek, Wilkes: "Omega: flexible, scalable schedulers for large
compute clusters", EuroSys 2013: conflicts for each transaction that succeeds; above 1 most work is
done again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from region_scheduler.bench.contention import Contended, Contest, contend

STALE_MS: Final = (0.0, 100.0, 500.0, 2_000.0)
_COLOURS: Final = ("#1b9e77", "#d95f02", "#7570b3", "#e7298a")
_WIDTH, _HEIGHT, _EDGE = 560, 340, 56


def points(most: int, tasks: int, locks: int) -> Iterator[Contest]:
    """Yield the contests of the curve: 1, 2, 4 … schedulers of one region, for each staleness.

    Args:
        most: Schedulers at most.
        tasks: Of each contest.
        locks: Of each contest.
    """
    counts = [1 << n for n in range(most.bit_length()) if 1 << n <= most]
    for stale_ms in STALE_MS:
        for count in counts:
            yield Contest(schedulers=count, regions=1, tasks=tasks, locks=locks, stale_ms=stale_ms)


def curve(most: int, tasks: int, locks: int) -> list[Contended]:
    """Run the contests of `points`, one after the other."""
    return [contend(contest) for contest in points(most, tasks, locks)]


def table(found: Sequence[Contended]) -> Iterator[str]:
    """Return the conflict fractions for people: a line for each staleness."""
    counts = sorted({one.contest.schedulers for one in found})
    yield "  ".join(["a view so old ", *(f"{n:>3} schedulers" for n in counts)])
    for stale_ms in sorted({one.contest.stale_ms for one in found}):
        row = _row(found, stale_ms)
        yield "  ".join([f"{stale_ms:>9,.0f} ms  ", *(f"{row[n]:14.3f}" for n in counts)])


def chart(found: Sequence[Contended]) -> str:
    """Return the curve as an SVG drawing, one line for each staleness."""
    counts = sorted({one.contest.schedulers for one in found})
    top = max(0.1, *(one.conflict_fraction for one in found)) * 1.1
    inner_w, inner_h = _WIDTH - 2 * _EDGE, _HEIGHT - 2 * _EDGE
    across = {n: _EDGE + inner_w * k / max(1, len(counts) - 1) for k, n in enumerate(counts)}

    def down(fraction: float) -> float:
        return _HEIGHT - _EDGE - inner_h * fraction / top

    marks = [_text(x, _HEIGHT - _EDGE + 20, f"{n}", "middle") for n, x in across.items()]
    for share in (0.0, 0.5, 1.0):
        value, y = share * top, f"{down(share * top):.1f}"
        marks.append(_text(_EDGE - 8, down(value) + 4, f"{value:.2f}", "end"))
        right = _WIDTH - _EDGE
        marks.append(f'<line x1="{_EDGE}" x2="{right}" y1="{y}" y2="{y}" stroke="#ccc"/>')
    stale = sorted({one.contest.stale_ms for one in found})
    for k, stale_ms in enumerate(stale):
        row, colour = _row(found, stale_ms), _COLOURS[k % len(_COLOURS)]
        path = " ".join(f"{across[n]:.1f},{down(row[n]):.1f}" for n in counts)
        marks.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        marks.append(_text(_EDGE + 10, _EDGE + 16 * k, f"{stale_ms:,.0f} ms old", "start", colour))
    marks.append(_text(_WIDTH / 2, _HEIGHT - 10, "schedulers that share nothing", "middle"))
    marks.append(_text(_WIDTH / 2, 22, "conflicts for each task that was done", "middle"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
        ' font-family="sans-serif" font-size="13">'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(marks)}</svg>\n'
    )


def _row(found: Sequence[Contended], stale_ms: float) -> dict[int, float]:
    return {
        one.contest.schedulers: one.conflict_fraction
        for one in found
        if one.contest.stale_ms == stale_ms
    }


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#333") -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {where}>{escape(text)}</text>"
