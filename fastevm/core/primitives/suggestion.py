"""Suggests known words for a misspelt word."""

from collections.abc import Iterable

CUTOFF = 0.6  # minimum similarity from 0 to 1, as in difflib


def nearest(
    word: str, known: Iterable[str], *, count: int = 1, cutoff: float = CUTOFF
) -> list[str]:
    """Returns at most ``count`` words that are similar to a word, the most similar first."""
    from difflib import get_close_matches  # imported late: only errors need it, and it takes 1 ms

    return get_close_matches(word, list(known), n=count, cutoff=cutoff)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns ``: did you mean 'word'?`` with the nearest known word, or an empty string."""
    near = nearest(word, known)
    return f": did you mean {near[0]!r}?" if near else ""
