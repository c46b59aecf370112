"""Encryption at rest: AES-256-GCM with keys from the environment.

An encrypted value is bound to its context (table, row and terms) and cannot be decrypted in another
row. Several keys form a ring: the first encrypts, all decrypt, so that keys can be rotated.
"""

import base64
import binascii
import contextlib
import hashlib
import os
import re
import secrets
from collections.abc import Sequence
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fastevm.payments.arguments import checked
from fastevm.payments.errors import VaultError

KEY_VARIABLE: Final = "FASTEVM_PAYMENTS_KEY"
KEY_LENGTH: Final = 32  # bytes
MOST_KEYS: Final = 16

_FORMATS: Final = (
    f"expected base64 of {KEY_LENGTH} bytes (44 characters, as 'fastevm pay rotate-keys --new'"
    f" prints) or {2 * KEY_LENGTH} hex digits; commas separate several keys"
)
_HEX: Final = re.compile(r"(?:0x)?([0-9a-fA-F]{64})")
_FORMAT: Final = b"\x01"
_ID_LENGTH: Final = 8
_NONCE_LENGTH: Final = 12
_HEADER: Final = len(_FORMAT) + _ID_LENGTH + _NONCE_LENGTH
_TAG_LENGTH: Final = 16


class SealContext(str):
    """A context. `Vault.open` also accepts ``older``, the context of an earlier version."""

    older: str = ""


@checked
class Vault:
    """A ring of keys. Its repr and errors show neither keys nor contents."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not 0 < len(keys) <= MOST_KEYS:
            raise VaultError(f"expected 1 to {MOST_KEYS} keys, found {len(keys)}")
        if any(len(key) != KEY_LENGTH for key in keys):
            raise VaultError(f"expected keys of {KEY_LENGTH} bytes")
        self._ciphers = {_key_id(key): AESGCM(key) for key in keys}
        self._newest = _key_id(keys[0])

    @classmethod
    def from_environment(cls, variable: str = KEY_VARIABLE) -> "Vault":
        """Reads the ring from a variable: keys separated by commas, newest first.

        A key is base64 of 32 bytes, as `new_key` returns it, or 64 hex digits. Blank parts are
        ignored.
        """
        text = os.environ.get(variable)
        if text is None:
            raise VaultError(
                f"{variable} is not set: set it to the output of 'fastevm pay rotate-keys --new'"
            )
        parts = [(part.strip(), at) for at, part in enumerate(text.split(","), 1) if part.strip()]
        if not parts:
            raise VaultError(f"{variable} is empty: {_FORMATS}")
        return cls([_decoded(part, variable, at) for part, at in parts])

    def seal(self, secret: bytes, context: str) -> bytes:
        """Encrypts ``secret`` for a context. :meth:`open` needs the same context."""
        nonce = secrets.token_bytes(_NONCE_LENGTH)
        header = _FORMAT + self._newest + nonce
        return header + self._ciphers[self._newest].encrypt(nonce, secret, _bound(header, context))

    def open(self, sealed: bytes, context: str) -> bytes:
        """Decrypts a sealed value.

        Raises :class:`VaultError` for an unknown key, another context, or altered data.
        """
        if sealed[:1] != _FORMAT or len(sealed) < _HEADER + _TAG_LENGTH:
            raise VaultError(f"{context}: not a sealed value")
        header = sealed[:_HEADER]
        cipher = self._ciphers.get(header[1 : 1 + _ID_LENGTH])
        if cipher is None:
            raise VaultError(
                f"{context}: encrypted with a key that is not in the ring: add it"
                f" to {KEY_VARIABLE}, after the newest key"
            )
        contexts = [context, *filter(None, [getattr(context, "older", "")])]
        for known in contexts:
            with contextlib.suppress(InvalidTag):
                return cipher.decrypt(
                    header[-_NONCE_LENGTH:], sealed[_HEADER:], _bound(header, known)
                )
        raise VaultError(f"{context}: altered, or encrypted for another context")

    def outdated(self, sealed: bytes) -> bool:
        """Whether the value should be encrypted again because the ring has a newer key."""
        return sealed[1 : 1 + _ID_LENGTH] != self._newest

    def __repr__(self) -> str:
        return f"<Vault of {len(self._ciphers)} keys>"

    def __reduce__(self) -> Any:
        raise TypeError("a Vault cannot be pickled: it contains keys")


def new_key() -> str:
    """Returns a random key in the format of the environment variable."""
    return base64.b64encode(secrets.token_bytes(KEY_LENGTH)).decode()


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"fastevm.payments key id" + key).digest()[:_ID_LENGTH]


def _bound(header: bytes, context: str) -> bytes:
    return header + context.encode()


def _decoded(part: str, variable: str, at: int) -> bytes:
    """Decodes a key. Raises VaultError; the text of the error does not show the key."""
    if (digits := _HEX.fullmatch(part)) is not None:
        return bytes.fromhex(digits[1])
    with contextlib.suppress(binascii.Error, ValueError):
        key = base64.b64decode(part, validate=True)
        if len(key) == KEY_LENGTH:
            return key
    raise VaultError(f"{variable}: key {at} has {len(part)} characters and is no key: {_FORMATS}")
