"""Tests a fork's options: anvil's names, units and defaults, and contradictions."""

import argparse
from pathlib import Path

import pytest

from fastevm.node.remote.options import ForkOptions, add_fork_arguments, fork_options

URL, HASH = "http://127.0.0.1:8545", "0x" + "ab" * 32


def parsed(*words: str) -> ForkOptions | None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_fork_arguments(parser)
    return fork_options(parser.parse_args(words))


def test_without_an_address_there_is_no_fork() -> None:
    assert parsed() is None


def test_the_defaults_are_those_of_anvil() -> None:
    found = parsed("-f", URL)
    assert found == ForkOptions(urls=(URL,))
    assert (found.retries, found.timeout, found.backoff) == (5, 45.0, 1.0)
    assert (found.compute_units_per_second, found.rate_limit, found.cache) == (330, True, True)


def test_every_option_is_read_in_its_unit() -> None:
    found = parsed(
        "--fork-url", URL, "--rpc-url", "http://127.0.0.1:2", "--fork-block-number", "-5",
        "--fork-header", "X-Key: a:b", "--fork-chain-id", "10", "--fork-retry-backoff", "250",
        "--retries", "2", "--timeout", "1500", "--cups", "99", "--no-rate-limit",
        "--cache-path", "/kept", "--fork-offline",
    )  # fmt: skip
    assert found == ForkOptions(
        urls=(URL, "http://127.0.0.1:2"),
        block="-5",
        headers={"X-Key": "a:b"},
        chain_id=10,
        backoff=0.25,
        retries=2,
        timeout=1.5,
        compute_units_per_second=99,
        rate_limit=False,
        cache=Path("/kept"),
        offline=True,
    )
    assert parsed("-f", URL, "--no-storage-caching").cache is False
    found = parsed("-f", URL, "--fork-transaction-hash", HASH)
    assert found.transaction == bytes.fromhex(HASH[2:])


@pytest.mark.parametrize(
    "words",
    [
        ("-f", f"{URL}@7", "--fork-block", "8"),
        ("-f", f"{URL}@7", "-f", f"{URL}@8"),
        ("-f", f"{URL}@7", "--fork-transaction-hash", HASH),
        ("-f", URL, "--fork-block", "soon"),
        ("--fork-block", "8"),
        ("--fork-offline",),
        ("--fork-header", "A: b"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"fork|block"):
        parsed(*words)


def test_one_block_may_be_named_twice() -> None:
    assert parsed("-f", f"{URL}@7", "--fork-block", "7").block == "7"


def test_keys_of_headers_are_not_shown() -> None:
    assert "secret" not in repr(parsed("-f", URL, "--fork-header", "X-Key: secret"))


@pytest.mark.parametrize("words", [("--fork-header", "nothing"), ("--fork-transaction-hash", "1")])
def test_a_value_of_a_wrong_form_is_an_error_of_usage(words: tuple[str, str]) -> None:
    with pytest.raises(argparse.ArgumentError):
        parsed("-f", URL, *words)
