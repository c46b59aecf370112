"""The accounts of a development chain whose transactions need no signature, or another one."""

from __future__ import annotations

from typing import Final

from fastevm.core.precompiles.ecrecover import impersonate_signature

MAX_IMPERSONATED: Final = 10_000  # accounts, besides "every account"


class Impersonation:
    """The impersonated accounts, in the order in which they were named; for any thread.

    ``everyone``: every account is, named or not.
    """

    def __init__(self) -> None:
        self.everyone = False
        self._accounts: dict[bytes, None] = {}

    @property
    def accounts(self) -> tuple[bytes, ...]:
        """The named accounts, 20 bytes each."""
        return tuple(self._accounts)

    def covers(self, address: bytes) -> bool:
        """Whether the account's transactions need no signature."""
        return self.everyone or address in self._accounts

    def start(self, address: bytes) -> None:
        """Impersonate an account; ValueError beyond MAX_IMPERSONATED of them."""
        if len(self._accounts) >= MAX_IMPERSONATED and address not in self._accounts:
            raise ValueError(f"{MAX_IMPERSONATED} accounts are impersonated, which is the limit")
        self._accounts[address] = None

    def signs(self, address: bytes, signature: bytes) -> None:
        """Let ECRECOVER find the account in a signature (r, s, v), whatever is signed.

        It does so on every chain of this process from now on. ValueError as of
        `impersonate_signature`.
        """
        impersonate_signature(signature, address)

    def stop(self, address: bytes) -> bool:
        """Impersonate an account no longer; whether it was named."""
        return self._accounts.pop(address, self) is None
