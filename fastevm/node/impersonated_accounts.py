"""Accounts of a development chain whose transactions need no signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fastevm.core.precompiles.ecrecover import impersonate_signature

MAX_IMPERSONATED: Final = 10_000  # accounts, not counting "every account"


class Impersonation:
    """The impersonated accounts in the order in which they were added. Thread-safe.

    ``changed()`` is called after each change.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self.changed = changed
        self._everyone = False
        self._accounts: dict[bytes, bool] = {}  # account -> whether `listed` contains it
        self._signatures: list[tuple[bytes, bytes]] = []

    @property
    def everyone(self) -> bool:
        """Whether all accounts are impersonated."""
        return self._everyone

    @everyone.setter
    def everyone(self, wanted: bool) -> None:
        self._everyone = wanted
        self.changed()

    @property
    def accounts(self) -> tuple[bytes, ...]:
        """The impersonated accounts, 20 bytes each.

        Does not list all accounts if `everyone` is true.
        """
        return tuple(self._accounts)

    @property
    def listed(self) -> tuple[bytes, ...]:
        """The accounts that eth_accounts returns: those that were not started with
        ``listed=False``.
        """
        return tuple(address for address, is_listed in self._accounts.items() if is_listed)

    @property
    def signatures(self) -> tuple[tuple[bytes, bytes], ...]:
        """The impersonated signatures: pairs of an account and a signature (65 bytes)."""
        return tuple(self._signatures)

    def covers(self, address: bytes) -> bool:
        """Returns whether the account's transactions need no signature."""
        return self._everyone or address in self._accounts

    def start(self, address: bytes, *, listed: bool = True) -> None:
        """Impersonates an account. Raises ValueError beyond MAX_IMPERSONATED accounts.

        ``listed``: add the account to those that eth_accounts returns. The account stays in that
        list until `stop`.
        """
        if len(self._accounts) >= MAX_IMPERSONATED and address not in self._accounts:
            raise ValueError(f"{MAX_IMPERSONATED} accounts are impersonated, which is the limit")
        self._accounts[address] = listed or self._accounts.get(address, False)
        self.changed()

    def signs(self, address: bytes, signature: bytes) -> None:
        """Makes ECRECOVER return the account for a signature (r, s, v) of any message.

        Applies to every chain of this process from now on. Raises the ValueError of
        `impersonate_signature`.
        """
        impersonate_signature(signature, address)
        self._signatures.append((address, signature))
        self.changed()

    def remember(self, address: bytes, signature: bytes) -> None:
        """Adds a pair of account and signature that is already registered for ECRECOVER."""
        self._signatures.append((address, signature))

    def stop(self, address: bytes) -> bool:
        """Stops impersonating an account. Returns whether it was impersonated."""
        was_impersonated = self._accounts.pop(address, None) is not None
        if was_impersonated:
            self.changed()
        return was_impersonated
