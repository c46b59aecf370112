"""What a merchant decides: depth, fees, waiting times and limits, and who signs transactions."""

from dataclasses import dataclass
from typing import Any, Protocol

from eth_account import Account
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from eth_utils.exceptions import ValidationError
from hexbytes import HexBytes

from fastevm.payments.errors import InvalidTerms

GWEI = 10**9
LEAST_BUMP_PERCENT = 10  # what nodes ask of a replacement, of both fees


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The choices of a merchant. Times are in seconds, fees in wei per gas.

    ``depth`` blocks, the one with the payment included, make a captured payment paid. Every scan
    of logs reads ``overlap`` blocks again. ``capture_in`` is how long from now a capture is
    expected to be included. ``forced_gas`` is the gas of a capture that is sent although it seems
    to fail.
    """

    depth: int = 1
    overlap: int = 64
    first_block: int = 0
    range_blocks: int = 2_000
    capture_in: int = 10
    poll: float = 0.2
    scan_every: float = 2.0
    tip: int = GWEI
    base_fee_factor: int = 2
    most_fee: int = 500 * GWEI
    gas_margin_percent: int = 20
    forced_gas: int = 150_000
    bump_after: float = 6.0
    bump_percent: int = 13
    most_bumps: int = 8

    def __post_init__(self) -> None:
        for name in ("depth", "overlap", "range_blocks", "base_fee_factor"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: expected 1 or more, found {getattr(self, name)}")
        if self.bump_percent < LEAST_BUMP_PERCENT:
            raise ValueError(f"bump_percent: expected {LEAST_BUMP_PERCENT} or more")

    def fees(self, base_fee: int) -> tuple[int, int]:
        """The fee cap and the tip of a new transaction."""
        cap = min(self.most_fee, self.base_fee_factor * base_fee + self.tip)
        return cap, min(self.tip, cap)

    def bumped(self, old: tuple[int, int], base_fee: int) -> tuple[int, int] | None:
        """The fees of a replacement; None when they would pass ``most_fee``."""
        cap, tip = self.fees(base_fee)
        raised = [fee + fee * self.bump_percent // 100 + 1 for fee in old]
        if raised[0] > self.most_fee:
            return None
        return max(cap, raised[0]), max(tip, raised[1])


class Signer(Protocol):
    """Who holds the key of the merchant's account: a key in memory, or a service that signs."""

    @property
    def address(self) -> str:
        """The account: the recipient of the payments."""
        ...

    def sign_transaction(self, fields: dict[str, Any]) -> bytes:
        """The raw bytes of the signed transaction. Called inside a database transaction."""
        ...


class KeySigner:
    """Signs with a private key in memory, which it never shows."""

    __slots__ = ("_account",)

    def __init__(self, private_key: bytes | str) -> None:
        try:
            self._account = Account.from_key(private_key)
        except (ValueError, TypeError, ValidationError):
            raise InvalidTerms("private_key: expected 32 bytes of a valid key") from None

    @property
    def address(self) -> str:
        """The account."""
        return str(self._account.address)

    def sign_transaction(self, fields: dict[str, Any]) -> bytes:
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
