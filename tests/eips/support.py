"""Helps the tests of the EIPs: finds the forks around an EIP, and runs code under them.

Code is assembler text (``"1 2 ADD"``) or bytes. In a chain of ``chain_across``, the genesis and
block 1 have the rules of the last fork without the EIP, and block 2 those of the first fork with
it.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest

from fastevm import EVM, Transaction
from fastevm.bench.programs.assembler import assemble
from fastevm.chain.chain import Chain
from fastevm.core.execution.block.header_draft import draft_header
from fastevm.core.execution.block.validation import validate_header
from fastevm.core.execution.types import Block, Header
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.forks import FORKS, fork_named
from fastevm.core.spec.schedule import schedule_for
from fastevm.errors import InvalidBlock, InvalidTransaction
from fastevm.evm.machine import ExecutionResult
from tests.unit.chain.blocks import ETHER, KEY, SENDER, build, grow, new_chain, payment

__all__ = [
    "BLOB_GAS",
    "BLOB_HASHES",
    "CONTRACT",
    "ETHER",
    "INVALID_OPCODE",
    "KEY",
    "MINER",
    "OTHER",
    "RETURN_TOP",
    "SENDER",
    "assemble",
    "before_and_after",
    "blob_payment",
    "blob_payments",
    "bomb",
    "build",
    "call_precompile",
    "calling",
    "chain_across",
    "child_header",
    "code_of",
    "cost",
    "gas",
    "grow",
    "header_refusal",
    "header_with_blobs",
    "machine",
    "modexp_operands",
    "payment",
    "refusal",
    "refused_block",
    "rewards",
    "run",
    "sstores",
    "top",
    "with_header",
    "word",
]

CONTRACT = b"\xc0" * 20
OTHER = b"\xd0" * 20
MINER = b"\x33" * 20
RETURN_TOP = " 0 MSTORE 32 0 RETURN"
INVALID_OPCODE = "invalid opcode"
GAS_LIMIT = 30_000_000
BLOB_GAS = 2**17
BLOB_HASHES = [bytes([1, *[number] * 31]) for number in range(1, 32)]


def before_and_after(number: int) -> tuple[str, str]:
    """Returns the names of the last fork without the EIP, and of the first fork with it."""
    having = [fork.name for fork in FORKS if number in {eip.number for eip in fork.all_eips}]
    names = [fork.name for fork in FORKS]
    return names[names.index(having[0]) - 1], having[0]


# --- code -----------------------------------------------------------------------------------------


def code_of(source: str | bytes) -> bytes:
    """Assembles text. Returns bytes unchanged."""
    return assemble(source) if isinstance(source, str) else source


def machine(
    fork: str, accounts: Mapping[bytes, Mapping[str, Any]] | None = None, **block: Any
) -> EVM:
    """Returns an EVM with a rich SENDER and ``accounts``, whose ``code`` may be assembler text."""
    evm = EVM(fork, **block)
    evm.set_account(SENDER, balance=100 * ETHER)
    for address, fields in (accounts or {}).items():
        evm.set_account(address, **{**fields, "code": code_of(fields.get("code", b""))})
    return evm


def run(
    fork: str,
    source: str | bytes,
    data: bytes = b"",
    *,
    gas: int = GAS_LIMIT,
    storage: Mapping[int, int] | None = None,
    balance: int = 0,
    accounts: Mapping[bytes, Mapping[str, Any]] | None = None,
    **block: Any,
) -> ExecutionResult:
    """Calls CONTRACT with this code from SENDER, as a message call without intrinsic gas."""
    contract = {"code": source, "storage": storage, "balance": balance}
    evm = machine(fork, {**(accounts or {}), CONTRACT: contract}, **block)
    return evm.call(CONTRACT, data, sender=SENDER, gas=gas)


def word(result: ExecutionResult) -> int:
    """Returns the output as a number. Fails if the call did not succeed."""
    assert result.success, result.error
    return int.from_bytes(result.output, "big")


def top(fork: str, source: str, **world: Any) -> int:
    """Returns the top of the stack after ``source``."""
    return word(run(fork, source + RETURN_TOP, **world))


def gas(fork: str, source: str, **world: Any) -> int:
    """Returns the gas that ``source`` uses, before refunds.

    Fails if ``source`` does not succeed.
    """
    result = run(fork, source, **world)
    assert result.success, result.error
    return result.gas_used


def cost(fork: str, setup: str, source: str, **world: Any) -> int:
    """Returns the gas that ``source`` alone uses when it runs after ``setup``."""
    return gas(fork, f"{setup} {source}", **world) - gas(fork, setup, **world)


def sstores(fork: str, values: Sequence[int]) -> tuple[int, int]:
    """Returns the gas of SSTOREs to one warm slot, and the refund counter after them.

    The first value is the slot's value before the transaction.
    """
    original, *written = values
    pushed = 6 * len(written)
    source = " ".join(f"{value} 0 SSTORE" for value in written)
    storage = {0: original}
    found = run(fork, f"0 SLOAD POP {source}", storage=storage)
    assert found.success, found.error
    return cost(fork, "0 SLOAD POP", source, storage=storage) - pushed, found.gas_refunded


def calling(mnemonic: str, address: bytes, *, value: int = 0, gas: int | str = "GAS") -> str:
    """Returns assembler text that calls an address without data, with one of the call opcodes."""
    values = f"{value} " if mnemonic in ("CALL", "CALLCODE") else ""
    return f"0 0 0 0 {values}0x{address.hex()} {gas} {mnemonic}"


def call_precompile(fork: str, number: int, data: bytes, gas: int = GAS_LIMIT) -> ExecutionResult:
    """Calls the address ``number``, which may be a precompile in the fork."""
    return machine(fork).call(number.to_bytes(20, "big"), data, sender=SENDER, gas=gas)


def modexp_operands(base: bytes, exponent: bytes, modulus: bytes) -> bytes:
    """Returns the input of MODEXP: three sizes and three numbers."""
    numbers = (base, exponent, modulus)
    return b"".join(len(number).to_bytes(32, "big") for number in numbers) + b"".join(numbers)


# --- transactions ---------------------------------------------------------------------------------


def refusal(
    fork: str,
    transaction: Transaction,
    accounts: Mapping[bytes, Mapping[str, Any]] | None = None,
    **block: Any,
) -> str | None:
    """Returns the code of the rule that rejects a transaction, or None if the transaction runs."""
    try:
        machine(fork, accounts, **block).execute(transaction)
    except InvalidTransaction as error:
        return error.code
    return None


def blob_payment(blobs: int = 1, nonce: int = 0, **fields: Any) -> Transaction:
    """Returns a signed transaction of type 3 with ``blobs`` blobs."""
    given = {
        "to": OTHER,
        "gas_limit": 200_000,
        "max_fee_per_gas": 2 * 10**9,
        "max_fee_per_blob_gas": 10**9,
        "blob_versioned_hashes": BLOB_HASHES[:blobs],
    }
    return Transaction.build(type=3, chain_id=1, nonce=nonce, **{**given, **fields}).sign(KEY)


def blob_payments(blobs: int, nonce: int = 0) -> list[Transaction]:
    """Returns transactions of type 3 with ``blobs`` blobs in total, at most six in each."""
    counts = [6] * (blobs // 6) + [blobs % 6]
    return [blob_payment(count, nonce + index) for index, count in enumerate(counts) if count]


# --- blocks ---------------------------------------------------------------------------------------


def chain_across(
    number: int, alloc: Mapping[bytes, Mapping[str, Any]] | None = None, **genesis: Any
) -> Chain:
    """Returns a chain with a rich SENDER. Block 2, at 24 seconds, is in the EIP's fork."""
    before, after = before_and_after(number)
    start = "2"
    if fork_named(after).by_time:
        start = "Time24"
    elif after == "Paris":
        # The genesis has less total difficulty than this, block 1 has more.
        start = "Diff20001"
    accounts = {
        address.hex(): {**fields, "code": "0x" + code_of(fields.get("code", b"")).hex()}
        for address, fields in (alloc or {}).items()
    }
    return new_chain(f"{before}To{after}At{start}", alloc=accounts, **genesis)


def with_header(block: Block, **changes: Any) -> Block:
    """Returns the block with changed header fields."""
    return replace(block, header=replace(block.header, **changes))


def refused_block(chain: Chain, block: Block) -> str:
    """Returns the field for which the chain rejects a block. Fails if the chain accepts it."""
    with pytest.raises(InvalidBlock) as refused:
        chain.add(block)
    return refused.value.field


def child_header(fork: str, parent: Header, *, seconds: int = 12) -> Header:
    """Returns the valid header of an empty child block, ``seconds`` after its parent."""
    return draft_header(parent, schedule_for(fork), timestamp=parent.timestamp + seconds)


def header_with_blobs(excess: int, used: int, base_fee: int) -> Header:
    """Returns a header that is half full of gas. ``excess`` and ``used``: blob gas, in blobs."""
    return Header(
        number=100,
        gas_limit=GAS_LIMIT,
        gas_used=GAS_LIMIT // 2,
        base_fee_per_gas=base_fee,
        withdrawals_root=bytes(32),
        excess_blob_gas=excess * BLOB_GAS,
        blob_gas_used=used * BLOB_GAS,
        parent_beacon_block_root=bytes(32),
        requests_hash=bytes(32),
    )


def header_refusal(fork: str, header: Header, parent: Header) -> str | None:
    """Returns the field for which the fork rejects a header, or None if the header is valid."""
    try:
        validate_header(header, parent, schedule_for(fork))
    except InvalidBlock as error:
        return error.field
    return None


def rewards(chain: Chain, count: int) -> list[int]:
    """Returns the reward in wei of a miner for each of ``count`` new blocks."""
    balances = [0]
    for _ in range(count):
        block = grow(chain, coinbase=MINER)
        balances.append(chain.layer_of(block.hash).balance(MINER))
    return [after - before for before, after in pairwise(balances)]


def bomb(fork: str, number: int) -> int:
    """Returns how much the difficulty bomb adds to the difficulty of block ``number``.

    The block comes 12 s after its parent. At this pace only the bomb changes the difficulty.
    """
    parent = Header(number=number - 1, difficulty=1 << 50, gas_limit=GAS_LIMIT)
    header = child_header(fork, parent, seconds=12)
    assert header_refusal(fork, header, parent) is None
    return header.difficulty - parent.difficulty
