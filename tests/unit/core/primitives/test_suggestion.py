"""Tests suggestions for misspelt words."""

from fastevm.core.primitives.suggestion import nearest

WORDS = ("berlin", "byzantium", "london", "paris")


def test_the_nearest_word_comes_first() -> None:
    assert nearest("pariss", WORDS) == ["paris"]
    assert nearest("berlon", WORDS, count=2, cutoff=0.5) == ["berlin", "london"]


def test_a_word_like_no_other_gets_none() -> None:
    assert nearest("xyz", WORDS) == []
