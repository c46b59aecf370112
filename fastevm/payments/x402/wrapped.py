"""Signatures of wallets that are not deployed yet (ERC-6492), and how to deploy them on the way.

A wrapper names a factory and what to call it with. The call is made through Multicall3, never from
the facilitator's own account, and only for factories that the operator listed.
"""

from typing import Final, NamedTuple

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError
from eth_utils.address import to_checksum_address

from fastevm.payments.calls import call_data

MAGIC: Final = bytes.fromhex("6492") * 16
MULTICALL: Final = "0xcA11bde05977b3631167028862bE2a173976CA11"


class Wrapped(NamedTuple):
    """The parts of a wrapper."""

    factory: str
    call: bytes
    inner: bytes


def wrap(factory: str, call: bytes, inner: bytes) -> bytes:
    """What a wallet that ``factory`` makes from ``call`` signs with."""
    return encode(["address", "bytes", "bytes"], [factory, call, inner]) + MAGIC


def unwrap(signature: bytes) -> Wrapped | None:
    """The parts of a wrapped signature; None for any other."""
    if not signature.endswith(MAGIC):
        return None
    try:
        factory, call, inner = decode(["address", "bytes", "bytes"], signature[:-32])
    except (DecodingError, OverflowError):
        return None
    return Wrapped(str(to_checksum_address(factory)), call, inner)


def through_multicall(factory: str, call: bytes, to: str, data: bytes) -> tuple[str, bytes]:
    """One transaction: the factory, which may fail if somebody was faster, and then the call."""
    calls = [(factory, True, call), (to, False, data)]
    return MULTICALL, call_data("aggregate3((address,bool,bytes)[])", calls)
