"""Messages of x402 versions 1 and 2: strict parsing, and output that published clients accept.

JSON with duplicate keys, fractions or infinities is refused, because two parsers could disagree
about an amount. Optional members may be null, which means absent. Absent members are not written,
because clients of version 1 reject nulls.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import force_setattr

from fastevm.payments.amounts import UINT256_MAX
from fastevm.payments.arguments import check_members, checked
from fastevm.payments.authorization import address
from fastevm.payments.errors import InvalidTerms, PaymentError
from fastevm.payments.hidden import hiding
from fastevm.payments.x402 import networks
from fastevm.payments.x402.reasons import SPENT
from fastevm.rpc_client.large_json import is_too_deep

VERSIONS: Final = (1, 2)
LONGEST_HEADER: Final = 65_536  # characters
LONGEST_BODY: Final = 131_072  # bytes
LONGEST_TIMEOUT: Final = 366 * 86_400  # seconds
DEEPEST: Final = 32  # levels of JSON nesting
EXACT: Final = "exact"
AUTH_CAPTURE: Final = "auth-capture"
AUTHORIZATION: Final = "authorization"  # the member of a payload that the payer signs

JSON_NAMES: Final = {"pay_to": "payTo", "max_timeout": "maxTimeoutSeconds"}

Json = dict[str, Any]

_HEX: Final = re.compile(r"0x(?:[0-9a-fA-F]{2})*")


class Malformed(PaymentError):
    """The message is not valid x402. The answer has status 400, never 402."""


def strict_json(text: str | bytes) -> Any:
    """Parses JSON. Raises :class:`Malformed` for anything that two parsers may read differently."""
    try:
        text = text if isinstance(text, str) else text.decode()
        if is_too_deep(text, DEEPEST):
            raise Malformed(f"the JSON has more than {DEEPEST} levels")
        return json.loads(
            text, object_pairs_hook=_object, parse_float=_no_number, parse_constant=_no_number
        )
    except Malformed:
        raise
    except (ValueError, RecursionError):
        raise Malformed("expected JSON") from None


def _object(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Malformed("duplicate key in a JSON object")
    return found


def _no_number(text: str) -> Any:
    raise Malformed(f"expected whole numbers, found {text[:40]}")


def encode_header(message: Mapping[str, Any]) -> str:
    """Returns a message as a header value: base64 of UTF-8 JSON."""
    return base64.b64encode(json.dumps(message, separators=(",", ":")).encode()).decode()


def decode_header(text: str) -> Json:
    """Parses a header value. Raises :class:`Malformed`."""
    if len(text) > LONGEST_HEADER:
        raise Malformed(f"the header exceeds {LONGEST_HEADER} characters")
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise Malformed("expected a header in base64") from None
    return as_object(strict_json(raw), "message")


@hiding("url")  # the query of the URL may contain a key of the caller
class Resource(Struct, frozen=True, kw_only=True):
    """The resource that is paid for."""

    url: str
    description: str = ""
    mime_type: str = ""

    def show(self) -> Json:
        """Returns the ``resource`` member of version 2."""
        members = {"url": self.url, "description": self.description, "mimeType": self.mime_type}
        return {name: value for name, value in members.items() if value}


@checked
class Requirements(Struct, frozen=True, kw_only=True):
    """An offer to accept ``amount`` units of ``asset``, paid to ``pay_to``.

    The payment must be made within ``max_timeout`` seconds.
    """

    scheme: str
    chain_id: int
    asset: str
    pay_to: str
    amount: int
    max_timeout: int = 300
    extra: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        check_members(self)
        force_setattr(self, "asset", address(self.asset, "asset"))
        force_setattr(self, "pay_to", address(self.pay_to, "pay_to"))
        if not 0 <= self.amount <= UINT256_MAX:
            raise InvalidTerms("amount: expected 0 to 2**256 - 1")
        if not 0 < self.max_timeout <= LONGEST_TIMEOUT:
            raise InvalidTerms(f"max_timeout: expected 1 to {LONGEST_TIMEOUT}")

    @property
    def network(self) -> str:
        """The chain in the notation of version 2 (CAIP-2)."""
        return networks.caip2(self.chain_id)

    @classmethod
    def read(cls, members: Any, version: int) -> "Requirements":
        """Parses ``paymentRequirements`` or ``accepted``. Raises :class:`Malformed`."""
        members = as_object(members, "paymentRequirements")
        network = as_text(members, "network")
        chain_id = networks.chain_of(network)
        if chain_id is None:
            raise Malformed(f"network: {network[:40]!r} is unknown")
        try:
            return cls(
                scheme=as_text(members, "scheme"),
                chain_id=chain_id,
                asset=as_text(members, "asset"),
                pay_to=as_text(members, "payTo"),
                amount=as_number(members, "maxAmountRequired" if version == 1 else "amount"),
                max_timeout=as_number(members, "maxTimeoutSeconds"),
                extra=as_object(members.get("extra") or {}, "extra"),
            )
        except InvalidTerms as error:
            name, _, rest = str(error).partition(":")
            raise Malformed(f"{JSON_NAMES.get(name, name)}:{rest}") from None

    def show(self) -> Json:
        """Returns the JSON of version 2."""
        return {
            "scheme": self.scheme,
            "network": self.network,
            "amount": str(self.amount),
            "asset": self.asset,
            "payTo": self.pay_to,
            "maxTimeoutSeconds": self.max_timeout,
            "extra": dict(self.extra),
        }

    def show_v1(self, resource: Resource) -> Json | None:
        """Returns the JSON of version 1; None if version 1 cannot express the offer."""
        name = networks.V1_NAMES.get(self.chain_id)
        if name is None or self.scheme != EXACT or self.extra.get("assetTransferMethod"):
            return None
        extra = {key: self.extra[key] for key in ("name", "version") if key in self.extra}
        return {
            "scheme": self.scheme,
            "network": name,
            "maxAmountRequired": str(self.amount),
            "resource": resource.url,
            "description": resource.description,
            "mimeType": resource.mime_type,
            "payTo": self.pay_to,
            "maxTimeoutSeconds": self.max_timeout,
            "asset": self.asset,
            "extra": extra,
        }


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """A payment as the payer sends it. ``accepted`` is the chosen offer; version 1 has none.

    ``payload`` is parsed strictly and normalised. So a payment has the same payload however the
    payer encoded it, and facilitators receive only members that were parsed. ``payer`` (20 bytes)
    and ``nonce`` (32 bytes) identify the payment on its chain and token.
    """

    version: int
    scheme: str
    chain_id: int
    payload: Mapping[str, Any] = field(repr=False)
    payer: bytes = field(init=False)
    nonce: bytes = field(init=False)
    accepted: Requirements | None = None
    resource: Mapping[str, Any] = field(default_factory=dict)
    extensions: Mapping[str, Any] = field(
        default_factory=dict, repr=False
    )  # may contain the secret id

    def __post_init__(self) -> None:
        check_members(self)
        payload = read_payload(self.payload)
        signed = payload[AUTHORIZATION]
        object.__setattr__(self, "payload", payload)
        object.__setattr__(self, "payer", bytes.fromhex(signed["from"][2:]))
        object.__setattr__(self, "nonce", bytes.fromhex(signed["nonce"][2:]))

    @classmethod
    def read(cls, members: Any) -> "Payment":
        """Parses a header or ``paymentPayload``. Raises :class:`Malformed`."""
        members = as_object(members, "paymentPayload")
        version = as_number(members, "x402Version")
        if version not in VERSIONS:
            raise Malformed(f"x402Version: expected 1 or 2, found {version}")
        payload = as_object(members.get("payload"), "payload")
        if version == 2:
            accepted = Requirements.read(members.get("accepted"), 2)
            return cls(
                version=2,
                scheme=accepted.scheme,
                chain_id=accepted.chain_id,
                payload=payload,
                accepted=accepted,
                resource=as_object(members.get("resource") or {}, "resource"),
                extensions=as_object(members.get("extensions") or {}, "extensions"),
            )
        network = as_text(members, "network")
        chain_id = networks.chain_of(network)
        if chain_id is None:
            raise Malformed(f"network: {network[:40]!r} is unknown")
        return cls(version=1, scheme=as_text(members, "scheme"), chain_id=chain_id, payload=payload)

    def chooses(self, offered: Requirements) -> bool:
        """Whether the payer chose this offer.

        A payment of version 2 repeats the offer. All members must be equal; only ``extra`` may have
        additional members. A payment of version 1 has only scheme and network.
        """
        if (self.scheme, self.chain_id) != (offered.scheme, offered.chain_id):
            return False
        chosen = self.accepted
        if chosen is None:
            return True
        same = all(
            getattr(chosen, name) == getattr(offered, name)
            for name in ("asset", "pay_to", "amount", "max_timeout")
        )
        missing = object()
        return same and all(
            chosen.extra.get(name, missing) == value for name, value in offered.extra.items()
        )


class Verified(Struct, frozen=True, kw_only=True):
    """The answer to /verify."""

    payer: str | None
    reason: str | None = None
    message: str = ""

    @property
    def valid(self) -> bool:
        """Whether the payment would succeed now."""
        return self.reason is None

    def show(self) -> Json:
        """Returns the JSON, equal in both versions."""
        members: Json = {"isValid": self.valid}
        if self.reason is not None:
            members |= {"invalidReason": self.reason, "invalidMessage": self.message}
        return members | ({"payer": self.payer} if self.payer else {})


FINAL: Final = "final"  # member of a failed /settle: no money moved, and none will


class Settled(Struct, frozen=True, kw_only=True):
    """The answer to /settle.

    The reason ``settlement_pending`` means that the result is not known yet. ``final`` is true for
    a failure if it is certain that neither this request nor an earlier request moved money.
    """

    chain_id: int
    payer: str | None = None
    transaction: str = ""
    amount: int | None = None
    reason: str | None = None
    message: str = ""
    final: bool = True

    @property
    def success(self) -> bool:
        """Whether the payment was made."""
        return self.reason is None

    @property
    def pending(self) -> bool:
        """Whether the result is not known yet, so that the payer must not sign another payment."""
        return self.reason == "settlement_pending"

    def show(self, version: int) -> Json:
        """Returns the JSON of a version."""
        members: Json = {"success": self.success}
        if self.reason is not None:
            members |= {"errorReason": self.reason}
            final = self.final and not self.pending and self.reason not in SPENT
            members |= {FINAL: True} if final else {}
            members |= {"errorMessage": self.message} if version == 2 and self.message else {}
        members |= {"payer": self.payer} if self.payer else {}
        members |= {
            "transaction": self.transaction,
            "network": networks.shown(self.chain_id, version) if self.chain_id else "",
        }
        amounts = version == 2 and self.success and self.amount is not None
        return members | ({"amount": str(self.amount)} if amounts else {})


def payment_required(
    offers: Sequence[Requirements],
    resource: Resource,
    error: str,
    extensions: Mapping[str, Any] | None = None,
) -> tuple[str, Json]:
    """Returns the ``PAYMENT-REQUIRED`` header (version 2) and JSON body (version 1) of a 402."""
    header = {
        "x402Version": 2,
        "error": error,
        "resource": resource.show(),
        "accepts": [offer.show() for offer in offers],
    }
    header |= {"extensions": dict(extensions)} if extensions else {}
    old = [shown for offer in offers if (shown := offer.show_v1(resource)) is not None]
    body = {"x402Version": 1, "error": error, "accepts": old} if old else {}
    return encode_header(header), body


def as_object(value: Any, name: str) -> Json:
    """Returns ``value`` if it is a JSON object. Raises :class:`Malformed` otherwise."""
    if not isinstance(value, dict):
        raise Malformed(f"{name}: expected an object")
    return value


def as_text(members: Mapping[str, Any], name: str) -> str:
    """Returns a text member. Raises :class:`Malformed`."""
    value = members.get(name)
    if not isinstance(value, str):
        raise Malformed(f"{name}: expected text")
    return value


def as_number(members: Mapping[str, Any], name: str) -> int:
    """Returns a member that is a number >= 0 or decimal digits. Raises :class:`Malformed`."""
    value = members.get(name)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 78:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= UINT256_MAX:
        raise Malformed(f"{name}: expected a whole number from 0 to 2**256 - 1")
    return value


def as_bytes(members: Mapping[str, Any], name: str, length: int | None = None) -> bytes:
    """Returns the bytes of a member that has 0x and two hex digits a byte. Raises Malformed."""
    text = as_text(members, name)
    if _HEX.fullmatch(text) is None:
        raise Malformed(f"{name}: expected 0x and two hex digits for each byte")
    raw = bytes.fromhex(text[2:])
    if length is not None and len(raw) != length:
        raise Malformed(f"{name}: expected {length} bytes, found {len(raw)}")
    return raw


def as_address(members: Mapping[str, Any], name: str) -> str:
    """Returns a checksummed address. Raises Malformed, also for a wrong checksum."""
    as_bytes(members, name, 20)
    try:
        return address(as_text(members, name), name)
    except InvalidTerms as error:
        raise Malformed(str(error)) from None


def read_payload(payload: Mapping[str, Any]) -> Json:
    """Returns the normalised payload, without unknown members. Raises :class:`Malformed`.

    Only EIP-3009 authorizations are supported, because their nonce identifies a payment.
    """
    if AUTHORIZATION not in payload:
        raise Malformed("payload: expected an EIP-3009 authorization")
    members = as_object(payload[AUTHORIZATION], AUTHORIZATION)
    signed = {name: as_address(members, name) for name in ("from", "to")}
    signed |= {
        name: str(as_number(members, name)) for name in ("value", "validAfter", "validBefore")
    }
    signed["nonce"] = "0x" + as_bytes(members, "nonce", 32).hex()
    read: Json = {AUTHORIZATION: signed}
    read["signature"] = "0x" + as_bytes(payload, "signature").hex()
    if payload.get("salt") is not None:
        read["salt"] = "0x" + as_bytes(payload, "salt", 32).hex()
    return read
