"""Tests durations with and without a unit."""

import pytest

from fastevm.core.primitives.duration import read_duration


@pytest.mark.parametrize(
    ("text", "unit", "seconds"),
    [
        ("200ms", "s", 0.2),
        ("2s", "ms", 2.0),
        ("1.5m", "s", 90.0),
        ("1h", "s", 3600.0),
        ("2", "s", 2.0),
        ("2", "ms", 0.002),
        ("0.5", "s", 0.5),
    ],
)
def test_a_unit_overrides_the_default_one(text: str, unit: str, seconds: float) -> None:
    assert read_duration(text, unit=unit) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "-1", "1e3", "2 s", "fast", "1d", "٢s", "1.", ".5", "inf"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected one such as 200ms"):
        read_duration(text, unit="s")
