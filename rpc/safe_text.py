"""Text of others, such as errors of upstream nodes and names of contracts, made safe to print."""

import re
from typing import Final

TEXT_LIMIT: Final = 2_048  # characters of a foreign text in the log
CUT: Final = "... ({} more characters)"

DIRECTIONS: Final = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that change the order in which text is shown (bidirectional controls)."""
SEPARATORS: Final = (0x2028, 0x2029)  # of lines and paragraphs
UNSAFE: Final = {
    **{code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))},
    **{code: f"\\u{code:04x}" for code in (*DIRECTIONS, *SEPARATORS)},
}
"""Characters that steer a terminal or forge a line, and how they are shown; for `str.translate`."""

ADDRESS: Final = re.compile(r"\b(?:https?|wss?)://[^\s'\",;)]*[^\s'\",;):.]")


def without_addresses(text: str) -> str:
    """``text`` without the addresses of upstream nodes, which are of the operator's network."""
    return ADDRESS.sub("the upstream node", text)


def cut(text: str, limit: int = TEXT_LIMIT) -> str:
    """The first ``limit`` characters of ``text``, and how many more it has."""
    return text if len(text) <= limit else text[:limit] + CUT.format(len(text) - limit)


def safe(text: object) -> str:
    """``text`` on one line, with escapes for unsafe characters, cut after `TEXT_LIMIT`."""
    shown = cut(str(text)).translate(UNSAFE)
    return shown.encode(errors="backslashreplace").decode()
