"""Signatures of authorizations: creation for tests and servers that hold a key, and verification.

A signature is a payment credential. The `repr` of `Signature` shows only its length, so it cannot
get into a log or an error by accident; read `secret_bytes` for the bytes.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from eth_account import Account
from eth_keys.exceptions import BadSignature
from eth_utils.exceptions import ValidationError

from fastevm.payments.arguments import checked
from fastevm.payments.authorization import Authorization, Kind, TypedMessage
from fastevm.payments.errors import InvalidTerms
from fastevm.payments.reasons import Reason

KEY_LENGTH: Final = 32  # bytes of a private key
SECP256K1_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
ECDSA_LENGTH: Final = 65  # r, s and v of a key's signature
LONGEST: Final = 4096  # bytes, for signatures of contract wallets

_HEX: Final = re.compile("[0-9a-fA-F]+")
_KEY_FORMATS: Final = "expected a private key as 64 hex digits, with or without 0x, or as 32 bytes"


@checked
class Signature:
    """A signature: ``r || s || v`` of a key, or arbitrary bytes of a contract wallet (ERC-1271)."""

    __slots__ = ("_raw",)

    def __init__(self, signature: bytes) -> None:
        found = len(signature)
        if not 0 < found <= LONGEST:
            raise InvalidTerms(f"signature: expected 1 to {LONGEST} bytes, found {found}")
        self._raw = bytes(signature)

    @classmethod
    def parse(cls, signature: "str | bytes | bytearray | Signature | Sequence[int]") -> "Signature":
        """Parses 0x-hex, bytes or ``(v, r, s)``. Raises InvalidTerms for anything else."""
        if isinstance(signature, Signature):
            return signature
        if isinstance(signature, str):
            try:
                raw = bytes.fromhex(signature.removeprefix("0x"))
            except ValueError:
                raise InvalidTerms("signature: expected hex digits") from None
        elif isinstance(signature, bytes | bytearray):
            raw = bytes(signature)
        else:
            raw = _joined(signature)
        return cls(raw)

    @property
    def of_key(self) -> "Signature":
        """Returns this signature with v 27 or 28 in place of 0 or 1.

        Only for payers without code: in a contract wallet's signature the last byte may mean
        anything.
        """
        if self.is_ecdsa and self._raw[64] < 2:
            return Signature(self._raw[:64] + bytes([self._raw[64] + 27]))
        return self

    @property
    def secret_bytes(self) -> bytes:
        """Returns the bytes. Do not log them."""
        return self._raw

    @property
    def is_ecdsa(self) -> bool:
        """Whether the signature has the length of an ECDSA signature (65 bytes)."""
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


def key_bytes(private_key: bytes | str, name: str = "private_key") -> bytes:
    """Returns the 32 bytes of a private key. Raises InvalidTerms without the key.

    The text contains ``name``, the name of the argument or variable.
    """
    if isinstance(private_key, str):
        digits = private_key.strip().removeprefix("0x")
        if not digits:
            raise InvalidTerms(f"{name} is empty: {_KEY_FORMATS}")
        if _HEX.fullmatch(digits) is None:
            found = f"{len(digits)} characters that are not all hex digits"
            raise InvalidTerms(f"{name}: {_KEY_FORMATS}, found {found}")
        if len(digits) != 2 * KEY_LENGTH:
            raise InvalidTerms(f"{name}: {_KEY_FORMATS}, found {len(digits)} hex digits")
        key = bytes.fromhex(digits)
    elif isinstance(private_key, bytes):
        key = bytes(private_key)
    else:
        raise InvalidTerms(f"{name}: {_KEY_FORMATS}, found {type(private_key).__name__}")
    if len(key) != KEY_LENGTH:
        raise InvalidTerms(f"{name}: {_KEY_FORMATS}, found {len(key)} bytes")
    if not 0 < int.from_bytes(key, "big") < SECP256K1_ORDER:
        raise InvalidTerms(f"{name}: the number is not a private key: it is 0 or too large")
    return key


@checked
def sign(message: TypedMessage, private_key: bytes | str) -> Signature:
    """Signs with ``private_key``. The signature is deterministic (RFC 6979), with low s."""
    signed = Account.sign_message(message.signable, key_bytes(private_key))
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
    """Returns why the token will reject the signature of a payer without code.

    Returns None if the token will accept it. Checks in the token's own order: length, s, v, signer.
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
    """Returns the reason if another account signed.

    Tells whether the payer signed the other message type (TRANSFER or RECEIVE).
    """
    if isinstance(message, Authorization) and not message.kind.has_memo:
        other = Kind.TRANSFER if message.kind is Kind.RECEIVE else Kind.RECEIVE
        twin = Authorization(message.domain, message.terms, other)
        if recover(twin, signature) == message.signer:
            return Reason.WRONG_TYPE, f"signed as {other.value}, not as {message.kind.value}"
    return Reason.SIGNATURE_SIGNER, "the payer did not sign these terms in this domain"
