"""Signatures of wallets that are not deployed yet (ERC-6492). The capture deploys the wallet.

A wrapped signature names a factory and its call data. Only factories in the merchant's list are
called. Multicall3 makes the call, never the account that pays the gas.
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
from fastevm.payments.hidden import hiding
from fastevm.payments.node import NodeClient
from fastevm.payments.signatures import Signature

MAGIC: Final = bytes.fromhex("6492") * 16
PENDING: Final = "pending"
GOOD: Final = "0x01"  # the validator's answer to a valid signature
# A state override gives this address the validator's code for one call. It has no other code.
VALIDATOR: Final = "0x0000000000000000000000000000000000006492"
MULTICALL: Final = "0xcA11bde05977b3631167028862bE2a173976CA11"
_CALLS: Final = "(address,bool,bytes)[]"
_RESULTS: Final = "(bool,bytes)[]"


@hiding("inner")
class Wrapped(NamedTuple):
    """The parts of an ERC-6492 signature."""

    factory: str
    call: bytes
    inner: bytes


def wrap(factory: str, call: bytes, inner: bytes) -> bytes:
    """Returns the ERC-6492 signature of a wallet that ``factory`` creates with ``call``."""
    return encode(["address", "bytes", "bytes"], [factory, call, inner]) + MAGIC


def unwrap(signature: bytes) -> Wrapped | None:
    """Returns the parts of an ERC-6492 signature; None for any other signature."""
    if not signature.endswith(MAGIC):
        return None
    try:
        factory, call, inner = decode(["address", "bytes", "bytes"], signature[:-32])
    except (DecodingError, OverflowError):
        return None
    return Wrapped(str(to_checksum_address(factory)), call, inner)


def without_wrapper(signature: Signature) -> Signature:
    """Returns the inner signature of an ERC-6492 signature, and any other signature unchanged."""
    wrapped = unwrap(signature.secret_bytes)
    return signature if wrapped is None else Signature(wrapped.inner)


async def refusal_of(
    node: NodeClient,
    message: TypedMessage,
    signature: Signature,
    factories: Collection[str],
    collectors: Collection[str],
) -> str | None:
    """Returns why the ERC-6492 signature of an undeployed wallet is refused; None if it is valid.

    One ``eth_call`` deploys the wallet and asks it about the signature, as ERC-6492 describes. A
    state override sets the validator's code, because not every node runs creation code in a call.

    Accepts only payments for which one transaction can deploy the wallet and capture: a TRANSFER,
    or a payment to one of the escrow ``collectors``. Raises NodeUnreachable.
    """
    wrapped = unwrap(signature.secret_bytes)
    assert wrapped is not None
    if not isinstance(message, Authorization) or (
        message.kind is Kind.RECEIVE and message.terms.recipient not in collectors
    ):
        return "an undeployed wallet can pay only by TRANSFER or into a hold"
    if wrapped.factory not in factories:
        return f"the wallet's factory {wrapped.factory} is not in the list of allowed factories"
    validator = artifact("SignatureValidator")
    data = validator.initcode(message.signer, message.digest, signature.secret_bytes)
    try:
        code = {VALIDATOR: {"code": "0x" + data.hex()}}
        answer = await node.call("eth_call", {"to": VALIDATOR}, PENDING, code)
    except NodeRefusal:
        answer = None
    return None if answer == GOOD else "the wallet would reject the signature once deployed"


def through_multicall(factory: str, call: bytes, to: str, data: bytes) -> tuple[str, bytes]:
    """Returns target and data of a Multicall3 call: it calls the factory, then ``to``.

    The factory call may fail, because somebody else may have deployed the wallet already.
    """
    return _aggregated([(factory, True, call), (to, False, data)])


def in_one_call(calls: Sequence[tuple[str, bytes]], *, may_fail: bool) -> tuple[str, bytes]:
    """Returns target and data of one Multicall3 call that makes all of ``calls`` (target, data).

    With ``may_fail``, a call that reverts does not affect the others. Without it, the first call
    that reverts makes the whole Multicall3 call revert.
    """
    return _aggregated([(to, may_fail, data) for to, data in calls])


def calls_in(data: bytes) -> list[tuple[str, bytes]]:
    """Decodes the calls (target, data) that :func:`in_one_call` encoded."""
    (calls,) = decode([_CALLS], data[4:])
    return [(str(to_checksum_address(to)), inner) for to, _, inner in calls]


def results_of(output: bytes) -> list[tuple[bool, bytes]] | None:
    """Decodes (success, output) of each call; None if the output is not Multicall3's."""
    try:
        (results,) = decode([_RESULTS], output)
    except (DecodingError, OverflowError):
        return None
    return list(results)


def _aggregated(calls: list[tuple[str, bool, bytes]]) -> tuple[str, bytes]:
    return MULTICALL, call_data(f"aggregate3({_CALLS})", calls)
