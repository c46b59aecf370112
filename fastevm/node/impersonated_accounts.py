"""Accounts of a development chain whose transactions need no signature."""

from __future__ import annotations

from typing import Final

from fastevm.core.precompiles.ecrecover import impersonate_signature

MAX_IMPERSONATED: Final = 10_000  # accounts, not counting "every account"


class Impersonation:
    """The impersonated accounts, in the order in which they were added; for any thread.

    ``everyone``: all accounts are impersonated.
    """

    def __init__(self) -> None:
        self.everyone = False
        self._accounts: dict[bytes, None] = {}

    @property
    def accounts(self) -> tuple[bytes, ...]:
        """The listed accounts, 20 bytes each."""
        return tuple(self._accounts)

    def covers(self, address: bytes) -> bool:
        """Returns whether the account's transactions need no signature."""
        return self.everyone or address in self._accounts

    def start(self, address: bytes) -> None:
        """Impersonates an account. Raises ValueError beyond MAX_IMPERSONATED accounts."""
        if len(self._accounts) >= MAX_IMPERSONATED and address not in self._accounts:
            raise ValueError(f"{MAX_IMPERSONATED} accounts are impersonated, which is the limit")
        self._accounts[address] = None

    def signs(self, address: bytes, signature: bytes) -> None:
        """Makes ECRECOVER return the account for a signature (r, s, v), for any signed data.

        It does so on every chain of this process from now on. Raises ValueError like
        `impersonate_signature`.
        """
        impersonate_signature(signature, address)

    def stop(self, address: bytes) -> bool:
        """Stops impersonating an account. Returns whether it was impersonated."""
        return self._accounts.pop(address, self) is None
