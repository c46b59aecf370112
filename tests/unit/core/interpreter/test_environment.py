"""Tests opcodes that read the message, the block and other accounts."""

import pytest

from fastevm.core.primitives.keccak import keccak256
from fastevm.testing.interpreter import SENDER, BareMachine

from .programs import MAIN, OTHER, THIRD, asm, returning

BLOCK = {
    "number": 1000, "timestamp": 77, "gas_limit": 88, "chain_id": 1 << 40, "coinbase": THIRD,
    "difficulty": 1 << 70, "prev_randao": 1 << 250, "base_fee": 9, "blob_base_fee": 11,
    "gas_price": 13, "origin": OTHER,
}  # fmt: skip


def word(value: bytes | int) -> int:
    return value if isinstance(value, int) else int.from_bytes(value, "big")


def ask(*parts: str | int | bytes, fork: str = "osaka", **block: object) -> int:
    accounts = {
        MAIN: {"code": returning(*parts), "balance": 21},
        OTHER: {"code": b"\x01\x02\x03", "balance": 5, "nonce": 1},
        SENDER: {"balance": 100},
        THIRD: {},
    }
    machine = BareMachine(fork, accounts, **(BLOCK | block))
    return word(machine.call(MAIN, b"abc", value=4).output)


@pytest.mark.parametrize(
    ("mnemonic", "expected"),
    [
        ("ADDRESS", MAIN), ("ORIGIN", OTHER), ("CALLER", SENDER), ("CALLVALUE", 4),
        ("CALLDATASIZE", 3), ("GASPRICE", 13), ("COINBASE", THIRD), ("TIMESTAMP", 77),
        ("NUMBER", 1000), ("PREVRANDAO", 1 << 250), ("GASLIMIT", 88), ("CHAINID", 1 << 40),
        ("SELFBALANCE", 25), ("BASEFEE", 9), ("BLOBBASEFEE", 11), ("RETURNDATASIZE", 0),
        ("MSIZE", 0), ("PC", 0), ("PUSH0", 0), ("CODESIZE", 9),
    ],
)  # fmt: skip
def test_an_op_without_operands(mnemonic: str, expected: bytes | int) -> None:
    assert ask(mnemonic) == word(expected)


def test_before_the_merge_randomness_is_difficulty() -> None:
    assert ask("PREVRANDAO", fork="london") == 1 << 70


def test_pc_is_that_of_the_op_itself() -> None:
    assert ask(5, "POP PC") == 3


def test_gas_is_what_is_left_behind_the_op() -> None:
    machine = BareMachine("osaka", {MAIN: {"code": returning(1, "POP GAS")}})
    assert word(machine.call(MAIN, gas=1_000).output) == 1_000 - 3 - 2 - 2


@pytest.mark.parametrize(("index", "found"), [(0, 7), (1, 8), (2, 0), (1 << 64, 0)])
def test_blobhash_by_index(index: int, found: int) -> None:
    hashes = [bytes(31) + b"\x07", bytes(31) + b"\x08"]
    assert ask(index, "BLOBHASH", blob_hashes=hashes) == found


@pytest.mark.parametrize(
    ("number", "found"),
    [(999, 1), (998, 2), (997, 0), (744, 0), (743, 0), (1000, 0), (1001, 0), ((1 << 64) + 999, 0)],
)
def test_blockhash_of_the_last_256_blocks(number: int, found: int) -> None:
    ancestors = [bytes(31) + b"\x01", bytes(31) + b"\x02"]
    assert ask(number, "BLOCKHASH", ancestors=ancestors) == found


def test_other_accounts() -> None:
    missing = bytes(20)
    assert ask(OTHER, "BALANCE") == 5
    assert ask(missing, "BALANCE") == 0
    assert ask(OTHER, "EXTCODESIZE") == 3
    assert ask(missing, "EXTCODESIZE") == 0
    assert ask(OTHER, "EXTCODEHASH") == word(keccak256(b"\x01\x02\x03"))
    assert ask(SENDER, "EXTCODEHASH") == word(keccak256(b""))
    assert ask(missing, "EXTCODEHASH") == 0
    assert ask(THIRD, "EXTCODEHASH") == 0


@pytest.mark.parametrize("op", ["BALANCE", "EXTCODESIZE", "EXTCODEHASH"])
def test_an_account_is_cold_once_precompiles_never(op: str) -> None:
    def used(*addresses: bytes) -> int:
        code = asm(*[part for address in addresses for part in (address, op, "POP")])
        return 20_000 - BareMachine("osaka", {MAIN: {"code": code}}).call(MAIN, gas=20_000).gas_left

    assert used(THIRD) == 3 + 2_600 + 2
    assert used(THIRD, THIRD) == 10 + 2_700
    assert used(bytes(19) + b"\x02") == 5 + 100
    assert used(bytes(18) + b"\x01\x00") == 5 + 100
