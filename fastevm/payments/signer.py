"""Who signs the merchant's transactions: a key in memory, or a service that is slow and may fail.

Signing happens outside of any database transaction. What was signed is used once it is stored, so
that a service may answer differently each time, or answer nobody who listens any more.
"""

from typing import Any, Protocol

from eth_account import Account
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from eth_utils.exceptions import ValidationError
from hexbytes import HexBytes

from fastevm.payments.errors import InvalidTerms


class Signer(Protocol):
    """Holds the key of the account that sends, or knows who does.

    One that signs at once may say so by an attribute ``sign_seconds``: when it has not signed what
    it reserved after so many seconds, its process is gone, and another one signs.
    """

    @property
    def address(self) -> str:
        """The account, with its checksum."""
        ...

    async def sign_transaction(self, fields: dict[str, Any]) -> bytes:
        """The raw bytes of the signed transaction; :class:`SignerUnavailable`."""
        ...


class KeySigner:
    """Signs with a private key in memory, which it never shows."""

    __slots__ = ("_account",)
    sign_seconds = 3.0

    def __init__(self, private_key: bytes | str) -> None:
        try:
            self._account = Account.from_key(private_key)
        except (ValueError, TypeError, ValidationError):
            raise InvalidTerms("private_key: expected 32 bytes of a valid key") from None

    @property
    def address(self) -> str:
        """The account."""
        return str(self._account.address)

    async def sign_transaction(self, fields: dict[str, Any]) -> bytes:
        """The raw bytes of the signed transaction."""
        return bytes(self._account.sign_transaction(fields).raw_transaction)

    def __repr__(self) -> str:
        return f"<KeySigner of {self.address}>"

    def __reduce__(self) -> Any:
        raise TypeError("a signer is not pickled: it holds a key")


def fields_of(raw: bytes) -> dict[str, Any]:
    """The members of a signed transaction, without its signature, to sign it anew."""
    fields = dict(TypedTransaction.from_bytes(HexBytes(raw)).as_dict())
    return {name: value for name, value in fields.items() if name not in ("v", "r", "s")}
