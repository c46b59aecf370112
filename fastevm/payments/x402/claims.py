"""The interface of payment schemes: claims parsed from payloads, and calls to collect them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from eth_utils.crypto import keccak

from fastevm.payments.authorization import Authorization, Kind, Terms
from fastevm.payments.errors import InvalidTerms
from fastevm.payments.hidden import hiding
from fastevm.payments.x402.messages import (
    Json,
    Malformed,
    Payment,
    Requirements,
    as_address,
    as_bytes,
    as_number,
    as_object,
    as_text,
)
from fastevm.payments.x402.reasons import MISSING_DOMAIN, NAME, VERSION, Refused
from fastevm.rpc_client.messages import Call as NodeCall

BLOCK: Final = "pending"


@hiding("data")  # `data` contains the payer's signature
class Call(NamedTuple):
    """A call that the facilitator's account makes. ``gas`` is the gas estimate."""

    to: str
    data: bytes
    gas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A parsed payload that matches its offer. It is not checked against the chain yet.

    ``note`` is JSON text that the scheme needs later. It is stored as the order's annex.
    """

    authorization: Authorization
    signature: bytes = field(repr=False)
    note: str = ""

    @property
    def payer(self) -> str:
        """The signer that the payload names."""
        return self.authorization.terms.payer

    @property
    def order_id(self) -> str:
        """The order id: a hash of chain, token, payer and nonce."""
        domain, terms = self.authorization.domain, self.authorization.terms
        text = f"{domain.chain_id}/{domain.token}/{terms.payer}/{terms.nonce.hex()}"
        return "x402-" + keccak(text=text).hex()[:40]


class Chain(Protocol):
    """The interface through which schemes use a chain. `ChainSettler` implements it."""

    chain_id: int
    factories: tuple[str, ...]

    @property
    def account(self) -> str:
        """The account that sends the facilitator's transactions."""
        ...

    def domain_of(self, asset: str) -> Any:
        """Returns a supported token. Raises Refused for any other token."""
        ...

    def now(self) -> int:
        """Returns the time in Unix seconds."""
        ...

    async def ask(self, calls: Sequence[NodeCall]) -> list[Any]:
        """Sends one batch to the node. Answers may be NodeRefusals. Raises Unavailable."""
        ...

    async def collect(self, calls: Sequence[tuple[str, bytes]]) -> Call:
        """Returns the first of these calls that would succeed now. Raises Refused."""
        ...


class Scheme(Protocol):
    """A payment scheme of x402."""

    name: str

    def supported(self, chain: Chain) -> Json:
        """Returns the ``extra`` member of the scheme's entry in /supported."""
        ...

    def read(self, chain: Chain, payment: Payment, offer: Requirements) -> Claim:
        """Parses the payload. Raises Malformed, or Refused if it does not match the offer."""
        ...

    async def check(self, chain: Chain, claim: Claim) -> Call:
        """Returns the collecting call if it succeeds on the pending state. Raises Refused."""
        ...


def check_domain(token: Any, offer: Requirements) -> None:
    """Raises Refused unless the offer's EIP-712 name and version equal those of the token."""
    for member, reason in (("name", NAME), ("version", VERSION)):
        value = offer.extra.get(member)
        if not isinstance(value, str):
            raise Refused(MISSING_DOMAIN, f"extra.{member} is missing")
        expected = getattr(token.domain, member)
        if value != expected:
            raise Refused(reason, f"expected {expected!r}, found {value[:64]!r}")


def check_types(offer: Requirements, texts: Sequence[str], numbers: Sequence[str] = ()) -> None:
    """Raises :class:`Malformed` if a member of ``extra`` has a wrong type.

    Members may be absent. Numbers may also be text of decimal digits.
    """
    extra = {name: value for name, value in offer.extra.items() if value is not None}
    try:
        for name in texts:
            if name in extra:
                as_text(extra, name)
        for name in numbers:
            if name in extra:
                as_number(extra, name)
    except Malformed as error:
        raise Malformed(f"extra.{error}") from None


def read_terms(payload: Json) -> Terms:
    """Parses the ``authorization`` member of a payload. Raises :class:`Malformed`."""
    members = as_object(payload.get("authorization"), "authorization")
    try:
        return Terms(
            payer=as_address(members, "from"),
            recipient=as_address(members, "to"),
            value=as_number(members, "value"),
            valid_after=as_number(members, "validAfter"),
            valid_before=as_number(members, "validBefore"),
            nonce=as_bytes(members, "nonce", 32),
        )
    except InvalidTerms as error:
        raise Malformed(f"authorization: {error}") from None


def authorization(token: Any, terms: Terms, kind: Kind) -> Authorization:
    """Returns the authorization that the payer signed."""
    return Authorization(token.domain, terms, kind)
