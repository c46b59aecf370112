"""Signatures of wallets that are not deployed yet (ERC-6492), and how to deploy them on the way.

A wrapper names a factory and what to call it with. The call is made through Multicall3, never from
the account that pays the gas, and only for factories that the operator listed.
"""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError
from eth_utils.address import to_checksum_address

from fastevm.payments.authorization import Authorization, Kind, TypedMessage
from fastevm.payments.calls import call_data
from fastevm.payments.contracts import artifact
from fastevm.payments.errors import NodeRefusal
from fastevm.payments.node import NodeClient
from fastevm.payments.signatures import Signature

MAGIC: Final = bytes.fromhex("6492") * 16
PENDING: Final = "pending"
GOOD: Final = "0x01"  # what the validator says of a good signature
VALIDATOR: Final = "0x0000000000000000000000000000000000006492"  # of one call, nowhere deployed
MULTICALL: Final = "0xcA11bde05977b3631167028862bE2a173976CA11"
_CALLS: Final = "(address,bool,bytes)[]"
_RESULTS: Final = "(bool,bytes)[]"


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


def without_wrapper(signature: Signature) -> Signature:
    """What the wallet itself signed with."""
    wrapped = unwrap(signature.secret_bytes)
    return signature if wrapped is None else Signature(wrapped.inner)


async def refusal_of(
    node: NodeClient,
    message: TypedMessage,
    signature: Signature,
    factories: Collection[str],
    collectors: Collection[str],
) -> str | None:
    """Why a wrapped signature of a wallet that is not there yet is refused; None when it is good.

    As ERC-6492 has it, one call makes the wallet and asks it; the validator is put at an address
    for that call, since not every node runs creation code in a call. Only what one transaction can
    deploy and take is accepted: a TRANSFER, or what goes to one of the ``collectors`` of escrows.
    NodeUnreachable.
    """
    wrapped = unwrap(signature.secret_bytes)
    assert wrapped is not None
    if not isinstance(message, Authorization) or (
        message.kind is Kind.RECEIVE and message.terms.recipient not in collectors
    ):
        return "a wallet that is not deployed pays by TRANSFER, or into a hold"
    if wrapped.factory not in factories:
        return f"the wallet's factory {wrapped.factory} is not listed"
    validator = artifact("SignatureValidator")
    data = validator.initcode(message.signer, message.digest, signature.secret_bytes)
    try:
        code = {VALIDATOR: {"code": "0x" + data.hex()}}
        told = await node.call("eth_call", {"to": VALIDATOR}, PENDING, code)
    except NodeRefusal:
        told = None
    return None if told == GOOD else "the wallet would not accept it once it is deployed"


def through_multicall(factory: str, call: bytes, to: str, data: bytes) -> tuple[str, bytes]:
    """One transaction: the factory, which may fail if somebody was faster, and then the call."""
    return _aggregated([(factory, True, call), (to, False, data)])


def in_one_call(calls: Sequence[tuple[str, bytes]], *, may_fail: bool) -> tuple[str, bytes]:
    """Target and data of one call of Multicall3 that makes all of ``calls`` (target, data).

    ``may_fail``: one that reverts is undone alone. Otherwise it takes all of them with it.
    """
    return _aggregated([(to, may_fail, data) for to, data in calls])


def calls_in(data: bytes) -> list[tuple[str, bytes]]:
    """The calls (target, data) that :func:`in_one_call` put together."""
    (calls,) = decode([_CALLS], data[4:])
    return [(str(to_checksum_address(to)), inner) for to, _, inner in calls]


def results_of(output: bytes) -> list[tuple[bool, bytes]] | None:
    """Of each call whether it succeeded, and its output; None for what Multicall3 never answers."""
    try:
        (results,) = decode([_RESULTS], output)
    except (DecodingError, OverflowError):
        return None
    return list(results)


def _aggregated(calls: list[tuple[str, bool, bytes]]) -> tuple[str, bytes]:
    return MULTICALL, call_data(f"aggregate3({_CALLS})", calls)
