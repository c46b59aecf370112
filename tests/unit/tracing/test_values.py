"""Tests durations in trace configurations."""

import pytest

from fastevm.tracing import TracingError, seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10s", 10), ("1m30s", 60), ("500ms", 0.5), ("1.5s", 1.5), ("0", 0), ("-3s", 0), ("9h", 60)],
)
def test_a_duration_is_read_and_bounded(text: str, seconds: float) -> None:
    assert seconds_of(text) == pytest.approx(min(seconds, 60))


@pytest.mark.parametrize("text", ["", "5", "s", "5 s", "five"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(TracingError, match="time: invalid duration"):
        seconds_of(text)
