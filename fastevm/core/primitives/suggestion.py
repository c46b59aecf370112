"""The known words that are nearest to a misspelt one."""

from collections.abc import Iterable

CUTOFF = 0.6  # likeness from 0 to 1, as difflib has it


def nearest(
    word: str, known: Iterable[str], *, count: int = 1, cutoff: float = CUTOFF
) -> list[str]:
    """At most ``count`` of the words, the nearest first; none that is too different."""
    from difflib import get_close_matches  # for an error: 1 ms of every other start

    return get_close_matches(word, list(known), n=count, cutoff=cutoff)
