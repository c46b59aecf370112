"""Tests the values that Python programs may pass as bytes and as slots."""

import pytest

from fastevm.core.primitives.bytes_like import bytes_of, word_of


def test_numbers_of_numpy_are_numbers_and_not_bytes() -> None:
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    assert word_of(numpy.int64(5)) == word_of(numpy.uint8(5)) == 5
    with pytest.raises(
        TypeError, match="data: expected bytes or 0x-prefixed hex text, found int64"
    ):
        bytes_of(numpy.int64(5))
    assert bytes_of(numpy.array([1, 2], dtype="uint8")) == b"\x01\x02"
    assert word_of(numpy.zeros(32, dtype="uint8")) == 0


@pytest.mark.parametrize("value", [5, 5.0, None, [5]])
def test_numbers_are_never_bytes(value: object) -> None:
    with pytest.raises(TypeError, match="expected bytes or 0x-prefixed hex text"):
        bytes_of(value)  # type: ignore[arg-type]
