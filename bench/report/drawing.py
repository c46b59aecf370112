"""Draws bars and lines as SVG text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH = 900
LABEL = 300  # width of the names of bars
ROW = 18
INK = "#1c2430"
BAR = "#2f6f9f"
SLOWER = "#b3261e"  # color of bars below 1
COLOURS = ("#2f6f9f", "#b3261e", "#3d8b5f", "#8a5fb3")


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    """Returns a text element."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="12" fill="{INK}" text-anchor="{anchor}">'
        f"{escape(words)}</text>"
    )


def frame(height: float, parts: list[str]) -> str:
    """Returns an SVG drawing of the parts."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" height="{height:.0f}">{"".join(parts)}</svg>'
    )


def bars(title: str, rows: Sequence[tuple[str, float]]) -> str:
    """Draws horizontal bars on a logarithmic scale from 1, or from a lower smallest value."""
    if not rows:
        return ""
    low = min(0.0, math.log(min(value for _, value in rows)))
    high = max(math.log(max(value for _, value in rows)), low + 0.1)
    unit = (WIDTH - LABEL - 80) / (high - low)
    zero = LABEL - low * unit
    parts = [text(0, 14, title)]
    for number, (name, value) in enumerate(rows):
        top = 24 + number * ROW
        length = math.log(value) * unit
        colour = BAR if length >= 0 else SLOWER
        parts += [
            text(LABEL - 8, top + 12, name, "end"),
            f'<rect x="{zero + min(0.0, length):.1f}" y="{top + 2}" width="{abs(length):.1f}" '
            f'height="{ROW - 5}" fill="{colour}"/>',
            text(zero + max(0.0, length) + 4, top + 12, f"{value:.3g}"),
        ]
    bottom = 24 + len(rows) * ROW
    parts.append(f'<line x1="{zero:.1f}" x2="{zero:.1f}" y1="20" y2="{bottom}" stroke="{INK}"/>')
    return frame(bottom + 8, parts)


def lines(title: str, positions: Sequence[float], series: Mapping[str, Sequence[float]]) -> str:
    """Draws lines over common positions, on a linear scale from zero."""
    if len(positions) < 2:
        return ""
    high = max(max(values) for values in series.values()) or 1.0
    left, bottom = 60.0, 260.0
    across = (WIDTH - left - 160) / (positions[-1] - positions[0])
    parts = [text(0, 14, title), text(left - 6, 34, f"{high:.3g}", "end")]
    parts += [text(left - 6, bottom, "0", "end")]
    parts.append(f'<path d="M{left} 30V{bottom}H{WIDTH - 160}" fill="none" stroke="{INK}"/>')
    for position in positions:
        x = left + (position - positions[0]) * across
        parts.append(text(x, bottom + 16, f"{position:.3g}", "middle"))
    for colour, (name, values) in zip(COLOURS, series.items(), strict=False):
        points = [
            (left + (position - positions[0]) * across, bottom - value / high * (bottom - 30))
            for position, value in zip(positions, values, strict=True)
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(text(points[-1][0] + 6, points[-1][1] + 4, name))
    return frame(bottom + 28, parts)
