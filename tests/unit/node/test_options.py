"""Tests the command-line options of a node's chain."""

import argparse

import pytest

from fastevm.chain.retention import MOST_BLOCK_THREADS
from fastevm.node.options import add_chain_arguments


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_chain_arguments(parser)
    return parser.parse_args(words)


def test_a_node_takes_as_many_threads_for_a_block_as_it_has_processors_up_to_a_limit() -> None:
    assert 1 <= parsed().block_threads <= MOST_BLOCK_THREADS
    assert parsed("--block-threads", "3").block_threads == 3


@pytest.mark.parametrize("text", ["0", "-1", "17", "two", "²"])
def test_other_numbers_of_threads_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentError, match="expected 1 to 16"):
        parsed(f"--block-threads={text}")
