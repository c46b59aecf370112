"""The AuthCaptureEscrow contract: payment terms, their hashes, and call data.

The payer authorizes a transfer to a token collector. The nonce of that authorization is the hash of
the payment terms, so the signature covers receiver, fees and deadlines. Only the operator can
capture, void and refund. The contract stores only the hash, so the operator must keep the terms to
move the money.
"""

import json
from typing import Any, Final, NamedTuple

from eth_abi.abi import encode
from eth_utils.crypto import keccak
from msgspec import Struct
from msgspec.structs import asdict, force_setattr

from fastevm.payments.authorization import Kind, address
from fastevm.payments.calls import call_data
from fastevm.payments.calls import capture_data as token_data
from fastevm.payments.erc6492 import through_multicall, unwrap, without_wrapper
from fastevm.payments.errors import InvalidTerms
from fastevm.payments.node import NodeClient
from fastevm.payments.orders import Order
from fastevm.payments.permits import permit_call
from fastevm.payments.signatures import Signature

ZERO: Final = "0x" + "00" * 20
INFO: Final = (
    "(address,address,address,address,uint120,uint48,uint48,uint48,uint16,uint16,address,uint256)"
)
TYPEHASH: Final = bytes.fromhex("ae68ac7ce30c86ece8196b61a7c486d8f0061f575037fbd34e7fe4e2820c6591")
WHOLE: Final = 10_000  # basis points
AMOUNT_BITS: Final = 120
TIME_BITS: Final = 48


class Deployment(NamedTuple):
    """Addresses of an escrow and its collectors.

    If ``fee_in_bps`` is true, ``capture`` takes the fee in basis points (v1.0), otherwise in token
    units (v1.1).
    """

    escrow: str
    erc3009_collector: str
    permit2_collector: str
    refund_collector: str
    fee_in_bps: bool = False


V1_1: Final = Deployment(
    "0xf96815976523E00e65Be8f34cA5e64b4f41EB19c",
    "0x8612dfdc421f80336cd14E8EF9cb1E765dB5ab88",
    "0xD69831Aed5bfe262067ec4c751f4F830EcdD446e",
    "0x7a03443724d14798c4AB4622F1DAAcA761Fea486",
)
V1_0: Final = Deployment(
    "0xBdEA0D1bcC5966192B070Fdf62aB4EF5b4420cff",
    "0x0E3dF9510de65469C4518D7843919c0b8C7A7757",
    "0x992476B9Ee81d52a5BdA0622C333938D0Af0aB26",
    "0x934907bffd0901b6A21e398B9C53A4A38F02fa5d",
    fee_in_bps=True,
)


class PaymentInfo(Struct, frozen=True, kw_only=True):
    """The terms of a hold. Amounts are token units, times Unix seconds, fees basis points.

    ``operator`` can pay the money to ``receiver`` only. The money must be collected before
    ``pre_approval_expiry``, captured before ``authorization_expiry`` and refunded before
    ``refund_expiry``. After ``authorization_expiry`` the payer can reclaim what was not captured.
    """

    operator: str
    payer: str
    receiver: str
    token: str
    max_amount: int
    pre_approval_expiry: int
    authorization_expiry: int
    refund_expiry: int
    min_fee_bps: int = 0
    max_fee_bps: int = 0
    fee_receiver: str = ZERO
    salt: int = 0

    def __post_init__(self) -> None:
        for name in ("operator", "payer", "receiver", "token", "fee_receiver"):
            force_setattr(self, name, address(getattr(self, name), name))
        for name, bits in (
            ("max_amount", AMOUNT_BITS),
            ("pre_approval_expiry", TIME_BITS),
            ("authorization_expiry", TIME_BITS),
            ("refund_expiry", TIME_BITS),
            ("salt", 256),
        ):
            if not 0 <= getattr(self, name) < 1 << bits:
                raise InvalidTerms(f"{name}: expected 0 to 2**{bits} - 1")
        if not self.pre_approval_expiry <= self.authorization_expiry <= self.refund_expiry:
            raise InvalidTerms("expiries: expected pre-approval <= authorization <= refund")
        if not 0 <= self.min_fee_bps <= self.max_fee_bps <= WHOLE:
            raise InvalidTerms(f"fees: expected 0 <= min <= max <= {WHOLE} basis points")

    def values(self) -> tuple[Any, ...]:
        """The members in the order of the Solidity struct."""
        return (
            self.operator, self.payer, self.receiver, self.token, self.max_amount,
            self.pre_approval_expiry, self.authorization_expiry, self.refund_expiry,
            self.min_fee_bps, self.max_fee_bps, self.fee_receiver, self.salt,
        )  # fmt: skip

    def hash(self, chain_id: int, escrow: str) -> bytes:
        """Returns the hash by which the escrow identifies the payment."""
        return _hash(self.values(), chain_id, escrow)

    def nonce(self, chain_id: int, escrow: str) -> bytes:
        """Returns the nonce of the payer's authorization: the payment's hash with a zero payer."""
        operator, _, *rest = self.values()
        return _hash((operator, ZERO, *rest), chain_id, escrow)

    def to_json(self) -> str:
        """Returns the terms as JSON, as the order stores them."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "PaymentInfo":
        """Parses :meth:`to_json`'s text. Raises InvalidTerms if it is malformed."""
        try:
            return cls(**json.loads(text))
        except (TypeError, ValueError):
            raise InvalidTerms("expected the terms of a hold as JSON") from None


def _hash(values: tuple[Any, ...], chain_id: int, escrow: str) -> bytes:
    terms = keccak(encode(["bytes32", INFO], [TYPEHASH, values]))
    return keccak(encode(["uint256", "address", "bytes32"], [chain_id, escrow, terms]))


def authorize_data(info: PaymentInfo, collector: str, signature: bytes) -> bytes:
    """Returns call data of ``authorize``, which collects the full amount."""
    signed = f"authorize({INFO},uint256,address,bytes)"
    return call_data(signed, info.values(), info.max_amount, collector, signature)


def capture_data(info: PaymentInfo, amount: int, fee: int, deployment: Deployment) -> bytes:
    """Returns call data of ``capture``, which pays ``amount`` less ``fee`` (token units)."""
    if deployment.fee_in_bps:
        bps = fee * WHOLE // amount if amount else 0
        signed = f"capture({INFO},uint256,uint16,address)"
        return call_data(signed, info.values(), amount, bps, info.fee_receiver)
    signed = f"capture({INFO},uint256,uint256,address)"
    return call_data(signed, info.values(), amount, fee, info.fee_receiver)


def void_data(info: PaymentInfo) -> bytes:
    """Returns call data of ``void``, which returns the held money to the payer."""
    return call_data(f"void({INFO})", info.values())


def reclaim_data(info: PaymentInfo) -> bytes:
    """Returns call data of ``reclaim``, with which the payer takes back the held money."""
    return call_data(f"reclaim({INFO})", info.values())


def refund_data(info: PaymentInfo, amount: int, collector: str) -> bytes:
    """Returns call data of ``refund``, which pays from the operator's own tokens."""
    signed = f"refund({INFO},uint256,address,bytes)"
    return call_data(signed, info.values(), amount, collector, b"")


def collecting_call(order: Order, signature: Signature) -> tuple[str, bytes]:
    """Returns target and data of the call that collects an order's money.

    The money goes to the recipient, or for a hold into the escrow. Raises InvalidTerms if the
    order's recipient is not a collector of a known escrow.
    """
    if order.authorization.kind is Kind.PERMIT:
        return permit_call(order, signature)
    if not order.annex:
        token, inner = order.authorization.domain.token, without_wrapper(signature)
        data, wrapped = token_data(order.authorization, inner), unwrap(signature.secret_bytes)
        if wrapped is None:
            return token, data
        return through_multicall(wrapped.factory, wrapped.call, token, data)
    info, collector = PaymentInfo.from_json(order.annex), order.authorization.terms.recipient
    return escrow_of(order), authorize_data(info, collector, signature.secret_bytes)


def escrow_of(order: Order) -> str:
    """Returns the escrow of a hold. Raises InvalidTerms if no known escrow has its collector."""
    collector = order.authorization.terms.recipient
    for deployment in (V1_1, V1_0):
        if deployment.erc3009_collector == collector:
            return deployment.escrow
    raise InvalidTerms(f"order {order.id}: {collector} is not a collector of a known escrow")


class Held(NamedTuple):
    """The escrow's ``paymentState`` of a payment. Amounts are in token units."""

    collected: bool
    capturable: int
    refundable: int


async def held(node: NodeClient, escrow: str, key: bytes, block: str = "pending") -> Held:
    """Reads ``paymentState`` of a payment's hash. Raises NodeRefusal or NodeUnreachable."""
    data = call_data("paymentState(bytes32)", key)
    answer = await node.call("eth_call", {"to": escrow, "data": "0x" + data.hex()}, block)
    words = bytes.fromhex(answer[2:]).ljust(96, b"\0")
    collected, capturable, refundable = (
        int.from_bytes(words[at : at + 32], "big") for at in (0, 32, 64)
    )
    return Held(bool(collected), capturable, refundable)
