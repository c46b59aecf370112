"""Runs an EVM with the storage of ArbOS, and calls Arbitrum's precompiles."""

from __future__ import annotations

from typing import Any

from eth_abi import decode, encode

from fastevm import EVM
from fastevm.core.native.arbitrum.storage import STATE_ADDRESS, slot
from fastevm.core.primitives.keccak import keccak256

CHAIN_ID, NUMBER, L1_NUMBER, TIMESTAMP = 42_161, 511_882_413, 26_125_271, 1_790_000_000
BASE_FEE = 20_114_000
L1, L2 = b"\x00", b"\x01"
ALICE, BOB, OWNER = (bytes([byte]) * 20 for byte in (0xA1, 0xB0, 0x0D))
GAS = 1_000_000


def precompile(number: int) -> bytes:
    return number.to_bytes(20, "big")


SYS, INFO, TABLE, OWNER_PUBLIC, GAS_INFO = map(precompile, (0x64, 0x65, 0x66, 0x6B, 0x6C))
AGGREGATOR, RETRYABLE, STATISTICS, OWNER_ONLY = map(precompile, (0x6D, 0x6E, 0x6F, 0x70))
WASM, WASM_CACHE = map(precompile, (0x71, 0x72))


def split_types(text: str) -> list[str]:
    """Splits a list of ABI types at its commas, but not at the commas inside tuples."""
    found, depth, start = [], 0, 0
    for at, character in enumerate(text + ","):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            if at > start:
                found.append(text[start:at])
            start = at + 1
    return found


def call_data(signature: str, *values: Any) -> bytes:
    types = split_types(signature[signature.index("(") + 1 : -1])
    return keccak256(signature.encode())[:4] + encode(types, values)


def word(value: bytes) -> int:
    return int.from_bytes(value, "big")


class ArbOS:
    """A machine under the rules of an ArbOS version."""

    def __init__(self, version: int = 51, **block: Any) -> None:
        options = {
            "chain_id": CHAIN_ID, "number": NUMBER, "l1_number": L1_NUMBER, "timestamp": TIMESTAMP,
            "base_fee": BASE_FEE, "prev_randao": 1, **block,
        }  # fmt: skip
        self.evm = EVM(f"arbos{version}", **options)
        self.evm.set_nonce(STATE_ADDRESS, 1)  # an empty account would be deleted

    def put(self, ids: tuple[bytes, ...], key: int, value: int) -> None:
        self.evm.set_storage(STATE_ADDRESS, slot(ids, key), value)

    def stored(self, ids: tuple[bytes, ...], key: int) -> int:
        return self.evm.storage(STATE_ADDRESS, slot(ids, key))

    def put_member(self, ids: tuple[bytes, ...], position: int, address: bytes) -> None:
        """Appends an address to the ArbOS address set at ``ids``, as element ``position``."""
        self.put(ids, 0, position)
        self.put(ids, position, word(address))
        self.put((*ids, b"\x00"), word(address), position)

    def run(self, to: bytes, signature: str, *values: Any, **options: Any) -> Any:
        return self.evm.call(to, call_data(signature, *values), **{"gas": GAS, **options})

    def ask(self, to: bytes, signature: str, result: str, *values: Any, **options: Any) -> Any:
        """Makes a call that must succeed. Returns the decoded result and the gas used."""
        found = self.run(to, signature, *values, **options)
        assert found.success, (signature, found)
        decoded = decode(split_types(result), found.output)
        return (decoded[0] if len(decoded) == 1 else decoded), found.gas_used
