"""Tests wake's development framework on a node: ``python wake_chain.py URL KEY``."""

from __future__ import annotations

import sys

from wake.testing import Account, TransactionRevertedError
from wake.testing.core import Chain

from tests.ecosystem.development.cases import case, tell

NOBODY = "0x00000000000000000000000000000000000000b0"
COUNTER = "5f54600101805f555f52600760205fa160205ff3"
INITCODE = bytes.fromhex(f"60{len(COUNTER) // 2:02x}600a5f3960{len(COUNTER) // 2:02x}5ff3{COUNTER}")
chain = Chain()


def created() -> Account:
    found = chain.deploy(INITCODE, return_tx=True)
    return Account(found.return_value.address, chain)


@case
def accounts_of_the_node() -> None:
    assert len(chain.accounts) == 10


@case
def deploy() -> None:
    assert created().code == bytes.fromhex(COUNTER)


@case
def transact() -> None:
    tx = created().transact()
    assert tx.status.value == 1
    assert tx.return_value == bytes(31) + b"\x01"


@case
def call() -> None:
    assert created().call() == bytes(31) + b"\x01"


@case
def estimate() -> None:
    assert created().estimate() > 21_000


@case
def access_list() -> None:
    _, gas = created().access_list()
    assert gas > 21_000


@case
def payment() -> None:
    target = Account(NOBODY, chain)
    before = target.balance
    target.transact(value=5)
    assert target.balance == before + 5


@case
def set_balance() -> None:
    target = Account("0x00000000000000000000000000000000000000c1", chain)
    target.balance = 10**18
    assert target.balance == 10**18


@case
def set_code() -> None:
    target = Account("0x00000000000000000000000000000000000000c2", chain)
    target.code = b"\x60\x01"
    assert target.code == b"\x60\x01"


@case
def set_nonce() -> None:
    target = Account("0x00000000000000000000000000000000000000c3", chain)
    target.nonce = 9
    assert target.nonce == 9


@case
def any_sender() -> None:
    sender = Account("0x00000000000000000000000000000000000000c4", chain)
    sender.balance = 10**18
    tx = Account(NOBODY, chain).transact(value=1, from_=sender)
    assert tx.status.value == 1


@case
def a_signing_sender() -> None:
    sender = Account.new(chain)
    sender.balance = 10**18
    assert Account(NOBODY, chain).transact(value=1, from_=sender).status.value == 1


@case
def refusal() -> None:
    target = Account("0x00000000000000000000000000000000000000c5", chain)
    target.code = bytes.fromhex("60015f5260205ffd")
    try:
        target.transact()
    except TransactionRevertedError:
        return
    raise AssertionError("it was not refused")


@case
def refusal_of_a_call() -> None:
    target = Account("0x00000000000000000000000000000000000000c5", chain)
    target.code = bytes.fromhex("60015f5260205ffd")
    try:
        target.call()
    except TransactionRevertedError:
        return
    raise AssertionError("it was not refused")


@case
def snapshot_and_revert() -> None:
    target = Account(NOBODY, chain)
    before = target.balance
    with chain.snapshot_and_revert():
        target.transact(value=5)
    assert target.balance == before


@case
def mine() -> None:
    before = chain.blocks["latest"].number
    chain.mine()
    assert chain.blocks["latest"].number == before + 1


@case
def mine_at_a_time() -> None:
    before = chain.blocks["latest"].timestamp
    chain.mine(lambda now: now + 1_000)
    assert chain.blocks["latest"].timestamp >= before + 1_000


@case
def mine_many() -> None:
    before = chain.blocks["latest"].number
    chain.mine_many(5)
    assert chain.blocks["latest"].number == before + 5


@case
def next_timestamp() -> None:
    aim = chain.blocks["latest"].timestamp + 500
    chain.set_next_block_timestamp(aim)
    assert Account(NOBODY, chain).transact().block.timestamp == aim


@case
def no_automine() -> None:
    with chain.change_automine(False):
        tx = Account(NOBODY, chain).transact(confirmations=0)
        before = chain.blocks["latest"].number
        chain.mine()
    assert tx.block_number == before + 1


@case
def block_gas_limit() -> None:
    chain.block_gas_limit = 29_000_001
    chain.mine()
    assert chain.blocks["latest"].gas_limit == 29_000_001


@case
def coinbase() -> None:
    chain.coinbase = Account(NOBODY, chain)
    chain.mine()
    assert chain.blocks["latest"].miner == Account(NOBODY, chain)


@case
def call_trace() -> None:
    assert created().transact().call_trace is not None


@case
def console_logs() -> None:
    assert created().transact().console_logs == []


@case
def raw_events() -> None:
    assert len(created().transact().raw_events) == 1


@case
def legacy_transaction() -> None:
    chain.default_tx_type = 0
    assert Account(NOBODY, chain).transact(value=1, gas_price=10**10).status.value == 1
    chain.default_tx_type = 2


@case
def next_base_fee() -> None:
    chain.set_next_block_base_fee_per_gas(7 * 10**9)
    chain.mine()
    assert chain.blocks["latest"].base_fee_per_gas == 7 * 10**9


@case
def chain_interface_dump_and_load() -> None:
    state = chain.chain_interface.dump_state()
    chain.chain_interface.load_state(state)


@case
def reset() -> None:
    chain.reset()
    assert chain.blocks["latest"].number == 0


def main() -> None:
    """Runs all cases. Prints a line of JSON for each."""
    with chain.connect(sys.argv[1]):
        chain.set_default_accounts(chain.accounts[0])
        tell()


if __name__ == "__main__":
    main()
