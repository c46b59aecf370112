"""What a scheme makes of a payload: who claims to pay what, and the call that would collect it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from eth_utils.crypto import keccak

from fastevm.payments.authorization import Authorization, Kind, Terms
from fastevm.payments.errors import InvalidTerms
from fastevm.payments.x402.messages import (
    Json,
    Malformed,
    Payment,
    Requirements,
    as_number,
    as_object,
    as_text,
)
from fastevm.payments.x402.reasons import MISSING_DOMAIN, NAME, VERSION, Refused
from fastevm.rpc_client.messages import Call as NodeCall

BLOCK: Final = "pending"


class Call(NamedTuple):
    """A call that the facilitator's account makes. ``gas`` is what it needs."""

    to: str
    data: bytes
    gas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A payload that says what it should; whether the chain would take it is not known yet.

    ``note`` is kept with the order: what a scheme needs beside the authorization.
    """

    authorization: Authorization
    signature: bytes = field(repr=False)
    note: str = ""

    @property
    def payer(self) -> str:
        """Who signed, as the payload says."""
        return self.authorization.terms.payer

    @property
    def order_id(self) -> str:
        """The same for the same chain, token, payer and nonce, whatever came around them."""
        domain, terms = self.authorization.domain, self.authorization.terms
        text = f"{domain.chain_id}/{domain.token}/{terms.payer}/{terms.nonce.hex()}"
        return "x402-" + keccak(text=text).hex()[:40]


class Chain(Protocol):
    """What schemes ask of the chain that they serve."""

    chain_id: int
    factories: tuple[str, ...]

    @property
    def account(self) -> str:
        """Who sends the facilitator's transactions."""
        ...

    def domain_of(self, asset: str) -> Any:
        """The token, as it was read from the chain; Refused for one that is not served."""
        ...

    def now(self) -> int:
        """Seconds."""
        ...

    async def ask(self, calls: Sequence[NodeCall]) -> list[Any]:
        """Answers of the node, in one batch."""
        ...

    async def collect(self, calls: Sequence[tuple[str, bytes]]) -> Call:
        """The first of these calls that would succeed now; Refused for the last one's reason."""
        ...


class Scheme(Protocol):
    """One way to pay."""

    name: str

    def supported(self, chain: Chain) -> Json:
        """The member ``extra`` of its line in /supported."""
        ...

    def read(self, chain: Chain, payment: Payment, offer: Requirements) -> Claim:
        """What the payload says; :class:`Malformed`, or Refused where it is not what was asked."""
        ...

    async def check(self, chain: Chain, claim: Claim) -> Call:
        """The call that collects, if it would succeed on the pending state; Refused."""
        ...


def check_domain(token: Any, offer: Requirements) -> None:
    """The offer's signing domain is the token's, which was read from the chain."""
    for member, reason in (("name", NAME), ("version", VERSION)):
        told = offer.extra.get(member)
        if not isinstance(told, str):
            raise Refused(MISSING_DOMAIN, f"extra.{member} is missing")
        expected = getattr(token.domain, member)
        if told != expected:
            raise Refused(reason, f"expected {expected!r}, found {told[:64]!r}")


def read_terms(payload: Json) -> Terms:
    """The member ``authorization`` of a payload; :class:`Malformed`."""
    told = as_object(payload.get("authorization"), "authorization")
    nonce = as_text(told, "nonce")
    try:
        return Terms(
            payer=as_text(told, "from"),
            recipient=as_text(told, "to"),
            value=as_number(told, "value"),
            valid_after=as_number(told, "validAfter"),
            valid_before=as_number(told, "validBefore"),
            nonce=bytes.fromhex(nonce.removeprefix("0x")),
        )
    except (InvalidTerms, ValueError) as error:
        raise Malformed(f"authorization: {error}") from None


def authorization(token: Any, terms: Terms, kind: Kind) -> Authorization:
    """What the payer signed."""
    return Authorization(token.domain, terms, kind)
