"""The capabilities of an endpoint, which are learned from its answers and cached on disk."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

MAX_UNCLEAR: Final = 2  # unexplained failures after which a capability counts as missing


class Capability(StrEnum):
    """A method to read state that not every endpoint supports."""

    BLOCK_HASH = "block_hash"  # a block parameter by hash (EIP-1898)
    PRESTATE = "prestate"  # debug_traceCall with the prestateTracer
    ACCESS_LIST = "access_list"  # eth_createAccessList
    # eth_createAccessList accepts a block only by number, which suffices for lists
    LIST_BY_NUMBER = "list_by_number"
    STORAGE_VALUES = "storage_values"  # eth_getStorageValues
    SIMULATE_READER = "simulate_reader"  # eth_simulateV1 with code overridden by a reader
    CALL_READER = "call_reader"  # eth_call with code overridden by a reader
    ACCOUNT_INFO = "account_info"  # eth_getAccountInfo: balance, nonce, code
    ACCOUNT = "account"  # eth_getAccount: balance, nonce, code hash
    PROOF = "proof"  # eth_getProof: balance, nonce and code hash, with a Merkle proof
    PRESTATE_CHECKED = "prestate_checked"  # traced slots were compared with reads
    BLOCK_RECEIPTS = "block_receipts"  # eth_getBlockReceipts


class Capabilities:
    """The capabilities of one endpoint. None means that a capability was not tried yet.

    Thread-safe.
    """

    def __init__(self, known: Mapping[str, Any] | None = None) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, bool] = {}
        self._unclear: dict[str, int] = {}
        self.changed = False
        names = set(Capability)
        for name, value in (known or {}).items():
            if name in names and isinstance(value, bool):
                self._known[name] = value

    def get(self, capability: Capability) -> bool | None:
        """Returns whether the endpoint has the capability, or None if it was not tried yet."""
        return self._known.get(capability)

    def set(self, capability: Capability, value: bool) -> None:
        """Records whether the endpoint has the capability."""
        with self._lock:
            if self._known.get(capability) is not value:
                self._known[capability] = value
                self.changed = True

    def unclear(self, capability: Capability) -> None:
        """Records a failure whose reason is unclear.

        After several, the capability counts as missing.
        """
        with self._lock:
            self._unclear[capability] = self._unclear.get(capability, 0) + 1
            often = self._unclear[capability] >= MAX_UNCLEAR
        if often:
            self.set(capability, False)

    def as_dict(self) -> dict[str, bool]:
        """Returns the known capabilities, for the cache."""
        with self._lock:
            return dict(self._known)

    def __repr__(self) -> str:
        return f"<Abilities {self.as_dict()}>"
