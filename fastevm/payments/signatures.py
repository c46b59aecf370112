"""Signatures of authorizations: creation for tests and servers that hold a key, and verification.

A signature is a payment credential. The `repr` of `Signature` shows only its length, so it cannot
get into a log or an error by accident; read `secret_bytes` for the bytes.
"""

from collections.abc import Sequence
from typing import Any, Final

from eth_account import Account
from eth_keys.exceptions import BadSignature
from eth_utils.exceptions import ValidationError

from fastevm.payments.authorization import Authorization, Kind, TypedMessage
from fastevm.payments.errors import InvalidTerms
from fastevm.payments.reasons import Reason

SECP256K1_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
ECDSA_LENGTH: Final = 65  # r, s and v of a key's signature
LONGEST: Final = 4096  # bytes, for signatures of contract wallets


class Signature:
    """A signature: ``r || s || v`` of a key, or arbitrary bytes of a contract wallet (ERC-1271)."""

    __slots__ = ("_raw",)

    def __init__(self, raw: bytes) -> None:
        if not 0 < len(raw) <= LONGEST:
            raise InvalidTerms(f"signature: expected 1 to {LONGEST} bytes, found {len(raw)}")
        self._raw = bytes(raw)

    @classmethod
    def parse(cls, value: "str | bytes | Signature | Sequence[int]") -> "Signature":
        """Parses 0x-hex, bytes or ``(v, r, s)``. Raises InvalidTerms for anything else."""
        if isinstance(value, Signature):
            return value
        if isinstance(value, str):
            try:
                raw = bytes.fromhex(value.removeprefix("0x"))
            except ValueError:
                raise InvalidTerms("signature: expected hex digits") from None
        elif isinstance(value, bytes | bytearray):
            raw = bytes(value)
        else:
            raw = _joined(value)
        return cls(raw)

    @property
    def of_key(self) -> "Signature":
        """This signature with v 27 or 28 in place of 0 or 1.

        Only for payers without code: in a contract wallet's signature the last byte may mean
        anything.
        """
        if self.is_ecdsa and self._raw[64] < 2:
            return Signature(self._raw[:64] + bytes([self._raw[64] + 27]))
        return self

    @property
    def secret_bytes(self) -> bytes:
        """The bytes. Do not log them."""
        return self._raw

    @property
    def is_ecdsa(self) -> bool:
        """Whether it has the length of an ECDSA signature (65 bytes)."""
        return len(self._raw) == ECDSA_LENGTH

    @property
    def vrs(self) -> tuple[int, bytes, bytes]:
        """``v``, ``r`` and ``s`` of an ECDSA signature. Do not log them."""
        if not self.is_ecdsa:
            raise InvalidTerms(f"signature: {len(self._raw)} bytes have no v, r and s")
        return self._raw[64], self._raw[:32], self._raw[32:64]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Signature) and self._raw == other._raw

    def __hash__(self) -> int:
        return hash(self._raw)

    def __repr__(self) -> str:
        return f"<Signature of {len(self._raw)} bytes>"

    def __reduce__(self) -> Any:
        raise TypeError("a Signature cannot be pickled: encrypt it with Vault.seal")


def _joined(value: Sequence[int]) -> bytes:
    try:
        v, r, s = value
        return r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes([v])
    except (AttributeError, OverflowError, TypeError, ValueError):
        raise InvalidTerms("signature: expected hex, bytes or three numbers (v, r, s)") from None


def sign(message: TypedMessage, private_key: bytes | str) -> Signature:
    """Signs with ``private_key``; deterministic (RFC 6979), with low s."""
    try:
        signed = Account.sign_message(message.signable, private_key)
    except (ValueError, TypeError, ValidationError):
        raise InvalidTerms("private_key: expected 32 bytes of a valid key") from None
    return Signature(bytes(signed.signature))


def recover(message: TypedMessage, signature: Signature) -> str | None:
    """Returns the signer's address of an ECDSA signature; None if the signature is invalid."""
    v, r, s = signature.vrs
    numbers = (v, int.from_bytes(r, "big"), int.from_bytes(s, "big"))
    try:
        return str(Account.recover_message(message.signable, vrs=numbers))
    except (BadSignature, ValidationError, ValueError):
        return None


def fault_of(message: TypedMessage, signature: Signature) -> tuple[Reason, str] | None:
    """Why the token will reject the signature of a payer without code; None if it will not.

    Checks in the token's own order: length, s, v, signer.
    """
    if not signature.is_ecdsa:
        length = len(signature.secret_bytes)
        return Reason.SIGNATURE_LENGTH, f"expected {ECDSA_LENGTH} bytes, found {length}"
    v, _, s = signature.vrs
    if int.from_bytes(s, "big") > SECP256K1_ORDER // 2:
        return Reason.SIGNATURE_S, "s is in the upper half of the curve's order"
    if v not in (27, 28):
        return Reason.SIGNATURE_V, f"v is {v}, expected 27 or 28"
    if recover(message, signature) == message.signer:
        return None
    return _other_signer(message, signature)


def _other_signer(message: TypedMessage, signature: Signature) -> tuple[Reason, str]:
    """Returns the reason for a wrong signer; detects a signature of the other message type."""
    if isinstance(message, Authorization) and not message.kind.has_memo:
        other = Kind.TRANSFER if message.kind is Kind.RECEIVE else Kind.RECEIVE
        twin = Authorization(message.domain, message.terms, other)
        if recover(twin, signature) == message.signer:
            return Reason.WRONG_TYPE, f"signed as {other.value}, not as {message.kind.value}"
    return Reason.SIGNATURE_SIGNER, "the payer did not sign these terms in this domain"
