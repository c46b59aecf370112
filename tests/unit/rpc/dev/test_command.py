"""``fastevm dev``: what its options make of a node."""

import argparse
from typing import Any

import pytest

from fastevm.node.dev_accounts import ETHER
from fastevm.rpc.dev import command
from fastevm.wire.text.hex import hex_bytes

PROXY = bytes.fromhex("4e59b44847b379578588920ca78fbf26c0b4956c")


def parsed(*options: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(options)


def node_of(*options: str) -> Any:
    return command.node_of(parsed(*options))


def test_without_options_it_is_the_chain_that_tools_expect() -> None:
    node = node_of()
    first = node.chain.genesis.header
    layer = node.chain.layer_of(node.chain.genesis.hash)
    assert node.mines_at_once
    assert node.config.chain_id == 31_337
    assert (first.gas_limit, first.base_fee_per_gas) == (30_000_000, 10**9)
    assert [layer.balance(one.address) for one in node.accounts] == [10_000 * ETHER] * 10
    assert hex_bytes(layer.code(PROXY)).startswith("0x7fff")


def test_the_options_of_the_chain() -> None:
    options = "-a 2 --balance 7 --chain-id 0x9 --gas-limit 1000000 --base-fee 5 --timestamp 77"
    node = node_of(*options.split())
    first = node.chain.genesis.header
    layer = node.chain.layer_of(node.chain.genesis.hash)
    assert node.config.chain_id == 9
    assert (first.gas_limit, first.base_fee_per_gas, first.timestamp) == (1_000_000, 5, 77)
    assert [layer.balance(one.address) for one in node.accounts] == [7 * ETHER] * 2


@pytest.mark.parametrize("options", ["--base-fee x", "--gas-limit 0", "--balance -1"])
def test_numbers_that_are_none_are_refused(
    options: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parsed(*options.split())
    assert "is no number of at least" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "cap"), [((), 0), (("--enable-tx-gas-limit",), 1 << 24)])
def test_the_most_gas_of_a_transaction_counts_on_request(option: tuple[str, ...], cap: int) -> None:
    node = node_of(*option)
    header = node.chain.head.header
    schedule = node.chain.schedule_for_child(header, header.timestamp + 1)
    assert schedule.parameters["tx_gas_cap"] == cap
