"""HTML tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

SHOWN_ROWS = 20
SHOWN_CELL = 80  # most characters of a cell


def html_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Returns a table with a title. Shortens long cells and says how many rows are omitted."""
    found = list(rows)
    body = "".join(row_html("td", row) for row in found[:SHOWN_ROWS])
    if len(found) > SHOWN_ROWS:
        more = f"... {len(found) - SHOWN_ROWS:,} more"
        body += f'<tr><td colspan="{max(len(header), 1)}">{more}</td></tr>'
    head = row_html("th", header) if header else ""
    return f"<table><caption>{escape(title)}</caption>{head}{body}</table>"


def row_html(tag: str, cells: Sequence[object]) -> str:
    """Returns a table row."""
    return "<tr>" + "".join(f"<{tag}>{escape(cell_text(cell))}</{tag}>" for cell in cells) + "</tr>"


def cell_text(cell: object) -> str:
    """Returns the text of a cell: bytes as hex, numbers with commas."""
    if isinstance(cell, bytes):
        size = (SHOWN_CELL - 2) // 2
        return f"0x{cell[:size].hex()}" + (f"... ({len(cell)} bytes)" if len(cell) > size else "")
    text = f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)
    return text if len(text) <= SHOWN_CELL else text[: SHOWN_CELL - 3] + "..."
