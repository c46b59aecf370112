"""Authorizations as the payer signs them: terms, token domains, EIP-712 typed data.

An EIP-3009 authorization binds payer, recipient, exact amount, validity window and a random
one-time nonce to one token contract on one chain. For a token that has memos instead of EIP-3009
(B20), the payer signs a permit (EIP-2612) or sends the transfer himself. The nonce of the terms is
then the memo of the transfer. Signing moves no tokens and reserves none.
"""

import secrets
import time
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import msgspec
from eth_account.messages import SignableMessage, encode_typed_data
from eth_utils.address import is_checksum_address, is_hex_address, to_checksum_address
from eth_utils.crypto import keccak
from msgspec import Struct
from msgspec.structs import force_setattr

from fastevm.payments.amounts import integer, text
from fastevm.payments.arguments import check_members, checked
from fastevm.payments.errors import InvalidTerms

DEFAULT_LIFETIME: Final = 900  # seconds until an authorization expires
DEFAULT_BACKDATE: Final = 60  # seconds before now that the window opens, for clock skew
LONGEST_TEXT: Final = 128  # characters, of a domain's name or version

_DOMAIN: Final = [
    {"name": "name", "type": "string"},
    {"name": "version", "type": "string"},
    {"name": "chainId", "type": "uint256"},
    {"name": "verifyingContract", "type": "address"},
]
_PAYMENT: Final = [
    {"name": "from", "type": "address"},
    {"name": "to", "type": "address"},
    {"name": "value", "type": "uint256"},
    {"name": "validAfter", "type": "uint256"},
    {"name": "validBefore", "type": "uint256"},
    {"name": "nonce", "type": "bytes32"},
]
_CANCEL: Final = [
    {"name": "authorizer", "type": "address"},
    {"name": "nonce", "type": "bytes32"},
]
_PERMIT: Final = [
    {"name": "owner", "type": "address"},
    {"name": "spender", "type": "address"},
    {"name": "value", "type": "uint256"},
    {"name": "nonce", "type": "uint256"},
    {"name": "deadline", "type": "uint256"},
]


class Kind(Enum):
    """The ways to authorize a payment. The value is the EIP-712 primary type.

    TRANSFER, RECEIVE and CANCEL are the messages of EIP-3009, PERMIT is the message of EIP-2612.
    With MEMO the payer signs no message: he sends ``transferWithMemo`` himself.
    """

    TRANSFER = "TransferWithAuthorization"
    RECEIVE = "ReceiveWithAuthorization"
    CANCEL = "CancelAuthorization"
    PERMIT = "Permit"
    MEMO = "TransferWithMemo"

    @property
    def has_memo(self) -> bool:
        """Whether the memo of the transfer identifies the payment."""
        return self in (Kind.PERMIT, Kind.MEMO)

    @property
    def fields(self) -> list[dict[str, str]]:
        """The members of the EIP-712 struct, in the order of its type string.

        Raises InvalidTerms for MEMO.
        """
        if self is Kind.MEMO:
            raise InvalidTerms("the payer of this order signs nothing: he sends transferWithMemo")
        return {Kind.CANCEL: _CANCEL, Kind.PERMIT: _PERMIT}.get(self, _PAYMENT)

    @property
    def typehash(self) -> bytes:
        """The EIP-712 type hash: keccak of the type string."""
        members = ",".join(f"{field['type']} {field['name']}" for field in self.fields)
        return keccak(text=f"{self.value}({members})")


class Domain(Struct, frozen=True):
    """The EIP-712 domain of a token. ``name`` and ``version`` are spelled as in the contract."""

    name: str
    version: str
    chain_id: int
    token: str

    def __post_init__(self) -> None:
        force_setattr(self, "token", address(self.token, "token"))
        force_setattr(self, "chain_id", integer(self.chain_id, "chain_id", least=1))
        for name in ("name", "version"):
            text(getattr(self, name), name, longest=LONGEST_TEXT)

    def to_typed(self) -> dict[str, Any]:
        """Returns the ``domain`` member of the typed data."""
        return {
            "name": self.name,
            "version": self.version,
            "chainId": self.chain_id,
            "verifyingContract": self.token,
        }

    @property
    def separator(self) -> bytes:
        """Returns the EIP-712 domain separator.

        It equals the token's ``DOMAIN_SEPARATOR()`` if all members of the domain are right.
        """
        return Cancellation(self, self.token, bytes(32)).signable.header


class TypedMessage:
    """A message that a payer signs as typed data."""

    __slots__ = ()

    domain: Domain

    @property
    def kind(self) -> Kind:
        """The kind of this message. Its value is the EIP-712 primary type."""
        raise NotImplementedError

    @property
    def signer(self) -> str:
        """The address that must sign."""
        raise NotImplementedError

    def message(self) -> dict[str, Any]:
        """Returns the ``message`` member of the typed data."""
        raise NotImplementedError

    def typed_data(self) -> dict[str, Any]:
        """Returns the parameter of ``eth_signTypedData_v4``, ready for JSON.

        Amounts and times are decimal strings, because JavaScript numbers would lose digits.
        """
        return {
            "types": {"EIP712Domain": _DOMAIN, self.kind.value: self.kind.fields},
            "primaryType": self.kind.value,
            "domain": self.domain.to_typed(),
            "message": self.message(),
        }

    @property
    def signable(self) -> SignableMessage:
        """The message in the form that eth-account signs."""
        return encode_typed_data(full_message=self.typed_data())

    @property
    def struct_hash(self) -> bytes:
        """The EIP-712 struct hash: type hash and encoded members."""
        return bytes(self.signable.body)

    @property
    def digest(self) -> bytes:
        """The 32-byte EIP-712 digest that is signed."""
        signable = self.signable
        return keccak(b"\x19" + signable.version + signable.header + signable.body)


@checked
class Terms(Struct, frozen=True, kw_only=True):
    """The terms of a payment: payer, recipient, value (token units), validity window (seconds).

    A capture is valid while ``valid_after < block.timestamp < valid_before``; both bounds are
    exclusive. ``nonce`` has 32 bytes, random by default. Payer and nonce together identify the
    authorization. For PERMIT and MEMO, ``nonce`` is the memo of the transfer, and no contract
    enforces ``valid_after``.
    """

    payer: str
    recipient: str
    value: int
    valid_after: int
    valid_before: int
    nonce: bytes = msgspec.field(default_factory=lambda: secrets.token_bytes(32))

    def __post_init__(self) -> None:
        force_setattr(self, "payer", address(self.payer, "payer"))
        force_setattr(self, "recipient", address(self.recipient, "recipient"))
        for name in ("value", "valid_after", "valid_before"):
            force_setattr(self, name, integer(getattr(self, name), name))
        if self.valid_after >= self.valid_before - 1:
            raise InvalidTerms("valid_before: expected at least valid_after + 2 (empty window)")
        force_setattr(self, "nonce", word(self.nonce, "nonce"))

    @classmethod
    def now(
        cls,
        payer: str,
        recipient: str,
        value: int | str,
        *,
        lifetime: int | str = DEFAULT_LIFETIME,
        backdate: int | str = DEFAULT_BACKDATE,
        at: int | str | None = None,
    ) -> "Terms":
        """Returns terms that are valid for ``lifetime`` seconds from now, with a fresh nonce.

        ``at`` (Unix time in seconds) replaces the time of the system clock.
        """
        start = int(time.time()) if at is None else integer(at, "at")
        lifetime, backdate = integer(lifetime, "lifetime"), integer(backdate, "backdate")
        return cls(
            payer=payer,
            recipient=recipient,
            value=integer(value, "value"),
            valid_after=max(0, start - backdate),
            valid_before=start + lifetime,
        )


class Permit(Struct, frozen=True):
    """The spender and the nonce of a permit; the terms contain its other members.

    ``spender`` may spend the tokens. ``nonce`` is the payer's permit nonce in the token (EIP-2612).
    """

    spender: str
    nonce: int

    def __post_init__(self) -> None:
        force_setattr(self, "spender", address(self.spender, "spender"))
        force_setattr(self, "nonce", integer(self.nonce, "nonce"))


@dataclass(frozen=True, slots=True)
class Authorization(TypedMessage):
    """The terms of a payment and the EIP-712 domain of its token.

    ``payment_kind`` decides who may submit the capture. RECEIVE: only the recipient. TRANSFER:
    anybody who knows the signature, so the merchant does not control when the payment is captured.
    PERMIT: only the operator of the collector that ``permit`` names as the spender. MEMO: only the
    payer.
    """

    domain: Domain
    terms: Terms
    payment_kind: Kind = Kind.RECEIVE
    permit: Permit | None = None

    def __post_init__(self) -> None:
        check_members(self)
        if self.payment_kind is Kind.CANCEL:
            raise InvalidTerms("payment_kind: CANCEL authorizes no payment")
        if (self.permit is not None) is not (self.payment_kind is Kind.PERMIT):
            raise InvalidTerms("permit: expected for PERMIT, and only for PERMIT")

    @property
    def kind(self) -> Kind:
        """TRANSFER, RECEIVE, PERMIT or MEMO."""
        return self.payment_kind

    @property
    def memo(self) -> str | None:
        """The memo of the transfer as 0x-hex. None for EIP-3009."""
        return "0x" + self.terms.nonce.hex() if self.kind.has_memo else None

    @property
    def deadline(self) -> int:
        """The last Unix second in which a permit is valid, one before ``valid_before``."""
        return self.terms.valid_before - 1

    @property
    def signer(self) -> str:
        """The payer."""
        return self.terms.payer

    def message(self) -> dict[str, Any]:
        """Returns the ``message`` member of the typed data."""
        terms, permit = self.terms, self.permit
        if permit is not None:
            return {
                "owner": terms.payer,
                "spender": permit.spender,
                "value": str(terms.value),
                "nonce": str(permit.nonce),
                "deadline": str(self.deadline),
            }
        return {
            "from": terms.payer,
            "to": terms.recipient,
            "value": str(terms.value),
            "validAfter": str(terms.valid_after),
            "validBefore": str(terms.valid_before),
            "nonce": "0x" + terms.nonce.hex(),
        }

    @property
    def cancellation(self) -> "Cancellation":
        """Returns the message with which the payer cancels this authorization.

        Raises InvalidTerms for PERMIT and MEMO, which have no such message.
        """
        if self.kind.has_memo:
            raise InvalidTerms(f"a {self.kind.value} cannot be cancelled: void the order")
        return Cancellation(self.domain, self.terms.payer, self.terms.nonce)


@dataclass(frozen=True, slots=True)
class Cancellation(TypedMessage):
    """The payer's ``CancelAuthorization``, which consumes an unused nonce."""

    domain: Domain
    authorizer: str
    nonce: bytes

    def __post_init__(self) -> None:
        check_members(self)
        object.__setattr__(self, "authorizer", address(self.authorizer, "authorizer"))
        object.__setattr__(self, "nonce", word(self.nonce, "nonce"))

    @property
    def kind(self) -> Kind:
        """CANCEL."""
        return Kind.CANCEL

    @property
    def signer(self) -> str:
        """The payer."""
        return self.authorizer

    def message(self) -> dict[str, Any]:
        """Returns the ``message`` member of the typed data."""
        return {"authorizer": self.authorizer, "nonce": "0x" + self.nonce.hex()}


def word(value: bytes, name: str) -> bytes:
    """Returns ``value`` if it is 32 bytes. Raises InvalidTerms, which names the field, if not."""
    if not isinstance(value, bytes):
        raise InvalidTerms(f"{name}: expected bytes, found {type(value).__name__}")
    if len(value) != 32:
        raise InvalidTerms(f"{name}: expected 32 bytes, found {len(value)}")
    return value


def address(text: str, name: str) -> str:
    """Returns the checksummed address. Raises InvalidTerms, which names the field, if invalid.

    A mixed-case address must have the right EIP-55 checksum, which catches mistyped digits.
    """
    if not isinstance(text, str) or not is_hex_address(text) or not text.startswith("0x"):
        raise InvalidTerms(f"{name}: expected an address of 20 bytes as 0x and 40 hex digits")
    digits = text[2:]
    if digits not in (digits.lower(), digits.upper()) and not is_checksum_address(text):
        raise InvalidTerms(f"{name}: {text} has a wrong checksum")
    return str(to_checksum_address(text))
