"""Tests titanoboa's NetworkEnv against a node: ``python titanoboa_network.py URL KEY``."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import boa
from boa.network import NetworkEnv
from eth_account import Account

from tests.ecosystem.development.cases import case, tell

SOURCE = """
event Stored:
    value: uint256

value: public(uint256)
owner: public(address)

@deploy
@payable
def __init__(first: uint256):
    self.value = first
    self.owner = msg.sender

@external
@payable
def store(amount: uint256) -> uint256:
    assert amount != 13, "unlucky"
    self.value = amount
    log Stored(value=amount)
    return amount

@external
def only_owner():
    assert msg.sender == self.owner
"""
NOBODY = "0x00000000000000000000000000000000000000B0"


def deployed() -> Any:
    return boa.loads(SOURCE, 5)


@case
def deploy_and_read() -> None:
    assert deployed().value() == 5


@case
def deploy_with_value() -> None:
    contract = boa.loads(SOURCE, 5, value=7)
    assert boa.env.get_balance(contract.address) == 7


@case
def send() -> None:
    contract = deployed()
    assert contract.store(6) == 6
    assert contract.value() == 6


@case
def logs() -> None:
    contract = deployed()
    contract.store(6)
    (log,) = contract.get_logs()
    assert log.value == 6


@case
def refusal_in_words() -> None:
    contract = deployed()
    with boa.reverts("unlucky"):
        contract.store(13)


@case
def refusal_by_location() -> None:
    contract = deployed()
    try:
        contract.only_owner(sender=boa.env.second)
    except boa.BoaError:
        return
    raise AssertionError("it was not refused")


@case
def anchor() -> None:
    contract = deployed()
    with boa.env.anchor():
        contract.store(6)
    assert contract.value() == 5


@case
def simulate() -> None:
    contract = deployed()
    assert contract.store(9, simulate=True) == 9
    assert contract.value() == 5


@case
def payment() -> None:
    before = boa.env.get_balance(NOBODY)
    boa.env.execute_code(NOBODY, value=3)
    assert boa.env.get_balance(NOBODY) == before + 3


@case
def code_and_storage() -> None:
    contract = deployed()
    assert boa.env.get_code(contract.address)
    assert contract._storage.value.get() == 5


@case
def second_sender() -> None:
    contract = deployed()
    with boa.env.prank(boa.env.second):
        assert contract.store(8) == 8


@case
def blueprint() -> None:
    assert boa.loads_partial(SOURCE).deploy_as_blueprint().address


@case
def at_an_address() -> None:
    first = deployed()
    assert boa.loads_partial(SOURCE).at(first.address).value() == 5


@case
def gas_of_a_call() -> None:
    contract = deployed()
    contract.store(6)
    assert contract._computation.get_gas_used() > 0


@case
def another_node_is_refused() -> None:
    assert boa.env.evm.patch.chain_id == 31337


def main() -> None:
    """Runs all cases. Prints a line of JSON for each."""
    url, key = sys.argv[1:3]
    warnings.simplefilter("ignore")
    boa.set_env(NetworkEnv(url))
    boa.env.add_account(Account.from_key(key))
    second = Account.from_key("0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d")
    boa.env.add_account(second)
    boa.env.second = second.address
    tell()


if __name__ == "__main__":
    main()
