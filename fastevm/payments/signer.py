"""Signers of the merchant's transactions: a key in memory or in a key service.

A key service may fail. Signing happens outside of database transactions, and a signature is used
only after it is stored. So a service may return a different signature each time, or answer after
the caller has given up.
"""

from typing import Any, Protocol

from eth_account import Account
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from hexbytes import HexBytes

from fastevm.payments.arguments import checked
from fastevm.payments.errors import InvalidTerms
from fastevm.payments.signatures import key_bytes


class Signer(Protocol):
    """Signs with the key of the sending account, or calls a service that signs with it.

    A signer that signs without a remote call may set ``sign_seconds``. If a reserved transaction is
    still unsigned after so many seconds, another process may sign it.
    """

    @property
    def address(self) -> str:
        """The account's checksummed address."""
        ...

    async def sign_transaction(self, fields: dict[str, Any]) -> bytes:
        """Returns the raw signed transaction. Raises :class:`SignerUnavailable`."""
        ...


@checked
class KeySigner:
    """Signs with a private key in memory; its `repr` shows only the address."""

    __slots__ = ("_account",)
    sign_seconds = 3.0

    def __init__(self, private_key: bytes | str) -> None:
        self._account = Account.from_key(key_bytes(private_key))

    @property
    def address(self) -> str:
        """The account's checksummed address."""
        return str(self._account.address)

    async def sign_transaction(self, fields: dict[str, Any]) -> bytes:
        """Returns the raw signed transaction."""
        try:
            return bytes(self._account.sign_transaction(fields).raw_transaction)
        except (TypeError, ValueError) as error:
            raise InvalidTerms(f"fields: {error}") from None

    def __repr__(self) -> str:
        return f"<KeySigner of {self.address}>"

    def __reduce__(self) -> Any:
        raise TypeError("a KeySigner cannot be pickled: it contains a private key")


def fields_of(raw: bytes) -> dict[str, Any]:
    """Returns the fields of a signed transaction without the signature.

    The caller uses the fields to sign the transaction again.
    """
    fields = dict(TypedTransaction.from_bytes(HexBytes(raw)).as_dict())
    return {name: value for name, value in fields.items() if name not in ("v", "r", "s")}
