"""What an endpoint can do: learned from its answers, kept on disk."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

MAX_UNCLEAR: Final = 2  # failures without a reason after which an ability counts as absent


class Ability(StrEnum):
    """Ways to ask for a state that not every endpoint offers."""

    BLOCK_HASH = "block_hash"  # a block parameter by hash (EIP-1898)
    PRESTATE = "prestate"  # debug_traceCall with the prestateTracer
    ACCESS_LIST = "access_list"  # eth_createAccessList
    LIST_BY_NUMBER = "list_by_number"  # it takes a block by number only, which is good enough
    STORAGE_VALUES = "storage_values"  # eth_getStorageValues
    SIMULATE_READER = "simulate_reader"  # eth_simulateV1 with a reader in place of codes
    CALL_READER = "call_reader"  # eth_call with a reader in place of a code
    ACCOUNT_INFO = "account_info"  # eth_getAccountInfo: balance, nonce, code
    ACCOUNT = "account"  # eth_getAccount: balance, nonce, hash of the code
    PROOF = "proof"  # eth_getProof: the same, with a proof
    PRESTATE_CHECKED = "prestate_checked"  # slots of a trace were held against reads
    BLOCK_RECEIPTS = "block_receipts"  # eth_getBlockReceipts


class Abilities:
    """What is known of one endpoint; None = not tried yet. Safe to use from threads."""

    def __init__(self, known: Mapping[str, Any] | None = None) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, bool] = {}
        self._unclear: dict[str, int] = {}
        self.changed = False
        names = set(Ability)
        for name, value in (known or {}).items():
            if name in names and isinstance(value, bool):
                self._known[name] = value

    def get(self, ability: Ability) -> bool | None:
        """Whether the endpoint has it; None if nobody tried."""
        return self._known.get(ability)

    def set(self, ability: Ability, value: bool) -> None:
        """Learn that it has it, or has it not."""
        with self._lock:
            if self._known.get(ability) is not value:
                self._known[ability] = value
                self.changed = True

    def unclear(self, ability: Ability) -> None:
        """Trying it failed for a reason that may be another; too often counts as absent."""
        with self._lock:
            self._unclear[ability] = self._unclear.get(ability, 0) + 1
            often = self._unclear[ability] >= MAX_UNCLEAR
        if often:
            self.set(ability, False)

    def as_dict(self) -> dict[str, bool]:
        """What is known, for the disk."""
        with self._lock:
            return dict(self._known)

    def __repr__(self) -> str:
        return f"<Abilities {self.as_dict()}>"
