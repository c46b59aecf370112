"""Tests that a recorded witness suffices to verify the block and contains nothing else."""

from __future__ import annotations

import pytest

from fastevm.chain.stateless import Witness, WitnessError, verify
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Withdrawal
from fastevm.core.primitives.replace import replace
from tests.unit.chain.blocks import RECIPIENT, payment

from .chains import CALLER, LOOKER, OLD_HASH, QUITTER, SIZER, WRITER, call, listing, sample

FORKS = ("Frontier", "Homestead", "SpuriousDragon", "Byzantium", "London", "Paris", "Shanghai")
FORKS += ("Cancun", "Prague", "Osaka", "BPO2")

BLOCKS = {
    "nothing": lambda: [],
    "payments": lambda: [payment(0), payment(1, to=bytes.fromhex("00" * 18 + "1000"))],
    "writes": lambda: [call(nonce, WRITER, 9, nonce) for nonce in range(5)],
    "deletions": lambda: [call(nonce, WRITER, 0, nonce + 1) for nonce in range(39)],
    "a code hash": lambda: [call(0, LOOKER, WRITER)],
    "an old block's hash": lambda: [call(0, OLD_HASH, 2)],
    "a code's size": lambda: [call(0, SIZER, WRITER)],
    "a destruction": lambda: [call(0, QUITTER, RECIPIENT), payment(1, to=QUITTER)],
    "calls": lambda: [call(0, CALLER, WRITER), call(1, CALLER, bytes(18) + b"\x77\x77")],
    "a creation": lambda: [payment(0, value=3, to=None, gas_limit=100_000, data=b"\x00")],
}


def without(items: tuple[bytes, ...], at: int) -> tuple[bytes, ...]:
    return items[:at] + items[at + 1 :]


@pytest.mark.parametrize("fork", FORKS)
def test_what_is_recorded_is_verified_under_every_fork(fork: str) -> None:
    transactions: list[Transaction] = []
    for nonce, (to, *arguments) in enumerate(
        (
            (WRITER, 0, 1),
            (WRITER, 9, 99),
            (OLD_HASH, 1),
            (SIZER, LOOKER),
            (QUITTER, RECIPIENT),
            (CALLER, QUITTER),
        )
    ):
        transactions.append(call(nonce, to, *arguments))
    chain, block, witness = sample(transactions, fork, blocks=4)
    verified = verify(block, witness, chain.config)
    assert verified.state_root == block.header.state_root
    assert verified.receipts == chain.receipts_of(block.hash)
    assert verified.gas_used == block.header.gas_used
    assert (verified.nodes, verified.codes) == (len(witness.state), len(witness.codes))


@pytest.mark.parametrize("name", BLOCKS)
def test_nothing_can_be_left_out(name: str) -> None:
    chain, block, witness = sample(BLOCKS[name](), blocks=5)
    assert verify(block, witness, chain.config).state_root == block.header.state_root
    for member in ("state", "codes", "headers"):
        items = getattr(witness, member)
        for at in range(len(items)):
            less = replace(witness, **{member: without(items, at)})
            with pytest.raises(WitnessError, match=r"missing|not linked"):
                verify(block, less, chain.config)


def test_the_order_and_what_is_too_much_do_not_matter() -> None:
    chain, block, witness = sample(BLOCKS["deletions"]())
    other = replace(
        witness, state=(b"\xc0", *reversed(witness.state)), codes=(b"\x60", *witness.codes)
    )
    assert verify(block, other, chain.config) == verify(block, witness, chain.config)


def test_code_that_is_not_read_is_left_out() -> None:
    _, _, looked = sample(BLOCKS["a code hash"]())
    _, _, sized = sample(BLOCKS["a code's size"]())
    writer = bytes.fromhex("60003560203555")
    assert (writer in looked.codes, writer in sized.codes) == (False, True)


def test_what_an_access_list_names_and_nobody_reads_is_left_out() -> None:
    entries = [(QUITTER, [1, 2]), (WRITER, [3, 77])]
    chain, block, witness = sample([listing(0, WRITER, 5, 3, entries=entries)])
    assert verify(block, witness, chain.config).state_root == block.header.state_root
    assert WRITER in witness.keys
    assert QUITTER not in witness.keys
    slots = {key for key in witness.keys if len(key) == 32}
    assert (3).to_bytes(32, "big") in slots
    assert slots.isdisjoint(number.to_bytes(32, "big") for number in (1, 2, 77))


def test_only_the_headers_that_are_asked_for_are_recorded() -> None:
    _, _, near = sample(BLOCKS["nothing"](), blocks=9)
    _, _, far = sample(BLOCKS["an old block's hash"](), blocks=9)
    # far has the headers of blocks 9 to 3, because the header of block 3 has the hash of block 2
    assert (len(near.headers), len(far.headers)) == (1, 7)


def test_withdrawals_are_recorded() -> None:
    paid = (Withdrawal(0, 1, RECIPIENT, 7), Withdrawal(1, 1, b"\x99" * 20, 0))
    chain, block, witness = sample([], withdrawals=paid)
    assert verify(block, witness, chain.config).state_root == block.header.state_root
    assert RECIPIENT in witness.keys


def test_a_witness_survives_its_json_form() -> None:
    _, _, witness = sample(BLOCKS["writes"]())
    assert Witness.from_json(witness.to_json()) == witness
