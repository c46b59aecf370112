"""What a transaction makes the terminal write is bounded, however long its texts are."""

import pytest

from tests.unit.rpc.terminal.test_terminal import LOGGING, REVERTING, Stand, data_of

LONG = 9_000  # characters


@pytest.mark.parametrize("as_json", [False, True])
def test_long_texts_of_contracts_are_cut(as_json: bool) -> None:
    stand = Stand(traces=True, as_json=as_json)
    stand.send(REVERTING, data_of("Error(string)", "x" * LONG))
    told = stand.told()
    assert "more characters)" in told and len(told) < 8_000


def test_line_feeds_of_the_console_begin_few_lines() -> None:
    stand = Stand()
    stand.send(LOGGING, data_of("log(string)", "\n" * 3_000))
    told = stand.told()
    assert told.count("\n") < 70 and "\\x0a" in told
