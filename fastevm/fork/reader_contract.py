"""A contract that reads a list of slots. In calls, its code replaces that of the account to read.

The call data is a list of 32-byte slots, the output the list of their values:

    i = 0; while i < calldatasize: mstore(i, sload(calldataload(i))); i += 32
    return(0, calldatasize)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from fastevm.fork.collector import bytes_of

# fmt: off
READER: Final = bytes.fromhex(
    "3d"          # RETURNDATASIZE      0 on every fork; i
    "5b"          # JUMPDEST      @1
    "36" "81" "10"  # CALLDATASIZE DUP2 LT     i < calldatasize
    "15" "6014" "57"  # ISZERO PUSH1 @20 JUMPI
    "80" "35" "54"  # DUP1 CALLDATALOAD SLOAD
    "81" "52"     # DUP2 MSTORE
    "6020" "01"   # PUSH1 32 ADD
    "6001" "56"   # PUSH1 @1 JUMP
    "5b"          # JUMPDEST      @20
    "36" "3d" "f3"  # CALLDATASIZE RETURNDATASIZE RETURN
)
# fmt: on
NO_HEADER: Final[Mapping[str, Any]] = MappingProxyType({})
READER_CODE: Final = "0x" + READER.hex()
WORD_BYTES: Final = 32
SLOTS_OF_A_CALL: Final = 5_000  # fits the gas limit of one transaction (EIP-7825)
SLOTS_OF_A_REQUEST: Final = 9_000  # fits the usual gas limit of a block
GAS_OF_A_SLOT: Final = 2_800  # a cold read and nonzero call data
GAS_OF_A_CALL: Final = 60_000
# System contracts, whose slots a simulated block may change before its first call.
CHANGED_BY_BLOCKS: Final = frozenset(
    bytes.fromhex(name)
    for name in (
        "000f3df6d732807ef1319fb7b8bb8522d0beac02",
        "0000f90827f1c53a10cb7a02335b175320002935",
        "00000961ef480eb55e80d19ad83579a64c007002",
        "0000bbddc7ce488642fb579f8b00f3a590007251",
        "a4b05fffffffffffffffffffffffffffffffffff",  # ArbOS: may also change before a call
    )
)


def reader_call(
    address: bytes, slots: Sequence[int], header: Mapping[str, Any] = NO_HEADER
) -> dict[str, Any]:
    """Returns the call object that reads ``slots`` of an account whose code the reader replaces.

    ``header``: the header of the block. On Arbitrum the call skips the charge for L1 data.
    """
    data = b"".join(slot.to_bytes(WORD_BYTES, "big") for slot in slots)
    gas = GAS_OF_A_CALL + GAS_OF_A_SLOT * len(slots)
    free = {"skipL1Charging": True} if "l1BlockNumber" in header else {}
    return {"to": "0x" + address.hex(), "input": "0x" + data.hex(), "gas": hex(gas), **free}


def reader_override(addresses: Sequence[bytes]) -> Mapping[str, Any]:
    """Returns the state override that replaces the code of accounts with the reader."""
    return {"0x" + address.hex(): {"code": READER_CODE} for address in addresses}


def values_in(output: Any, slots: Sequence[int]) -> list[int]:
    """Returns the slot values in the reader's output. Raises BadValue."""
    data = bytes_of(output, "output of the reader", WORD_BYTES * len(slots))
    return [
        int.from_bytes(data[at : at + WORD_BYTES], "big") for at in range(0, len(data), WORD_BYTES)
    ]
