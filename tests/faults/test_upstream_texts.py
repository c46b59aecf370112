"""Tests that error messages about a fork's upstream are short and name the endpoint."""

from typing import Any, cast

import pytest

from fastevm.errors import FORK_TEXT, ForkError
from fastevm.fork.collector import BadValue, word_of
from fastevm.rpc.before_fork import logs_of_block_upstream
from fastevm.rpc.log_filter import LogFilter

LONG = 10_000_000  # characters


class History:
    """An upstream that answers every request with the same value."""

    name = "http://upstream"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def request(self, method: str, params: Any) -> Any:
        return self.answer


@pytest.mark.parametrize("answer", ["x" * LONG, "0x" + "1" * LONG, ["x" * LONG], 1.5, None])
def test_a_value_of_any_size_gives_a_short_error(answer: Any) -> None:
    with pytest.raises(BadValue) as refused:
        word_of(answer, "balance")
    assert len(str(refused.value)) < FORK_TEXT + 10


def test_the_text_of_an_endpoint_is_cut() -> None:
    assert len(str(ForkError("x" * LONG))) < FORK_TEXT + 10
    assert str(ForkError("short")) == "short"


@pytest.mark.parametrize("answer", [1.5, None, True, {}, "x", [1], [None]])
def test_logs_that_are_no_list_of_logs_are_an_error(answer: Any) -> None:
    history = cast("Any", History(answer))
    with pytest.raises(ForkError, match="http://upstream: eth_getLogs: expected a list of logs"):
        logs_of_block_upstream(history, LogFilter(), bytes(32))
