"""Escapes foreign text, such as errors of upstream nodes and contract names, for printing."""

import re
from typing import Final

TEXT_LIMIT: Final = 2_048  # most characters of a foreign text in the log
CUT: Final = "... ({} more characters)"

DIRECTIONS: Final = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that change the order in which text is shown (bidirectional controls)."""
SEPARATORS: Final = (0x2028, 0x2029)  # line separator, paragraph separator
UNSAFE: Final = {
    **{code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))},
    **{code: f"\\u{code:04x}" for code in (*DIRECTIONS, *SEPARATORS)},
}
"""Escapes for characters that control a terminal or start a line; for `str.translate`."""
UNSAFE_IN_LINES: Final = {code: text for code, text in UNSAFE.items() if code not in (9, 10)}
"""Escapes for characters that control a terminal, in text of several lines; for `str.translate`."""

ADDRESS: Final = re.compile(r"\b(?:https?|wss?)://[^\s'\",;)]*[^\s'\",;):.]")


def without_addresses(text: str) -> str:
    """Returns ``text`` without the addresses of upstream nodes, which only the operator may see."""
    return ADDRESS.sub("the upstream node", text)


def cut(text: str, limit: int = TEXT_LIMIT) -> str:
    """Returns the first ``limit`` characters of ``text``, and a note of how many were cut."""
    return text if len(text) <= limit else text[:limit] + CUT.format(len(text) - limit)


def safe(text: object) -> str:
    """Returns ``text`` on one line, with unsafe characters escaped, cut at `TEXT_LIMIT`."""
    shown = cut(str(text)).translate(UNSAFE)
    return shown.encode(errors="backslashreplace").decode()
