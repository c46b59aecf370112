"""Implements ``pytest --forked``, which puts an empty remote state below every state of a test.

So every test also runs with fetched values.
"""

import contextlib
import importlib
import pkgutil
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

import fastevm
import fastevm.core.state.layer
import fastevm.evm.machine
from fastevm.conformance.pre_states import Recorded
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Header
from fastevm.node.node import Node
from fastevm.node.remote import LocalState
from fastevm.node.remote.fork_history import ForkHistory
from fastevm.node.remote.transaction_state import TransactionState

NOT_LOADED: Final = frozenset(("rpc", "bench", "payments", "integrations", "__main__"))
ALONE: Final = "its builder has no node, which would fetch what transactions read"
LEFT_OUT: Final = {
    "unit/builder/test_slice_builder.py": ALONE,
    "unit/builder/test_simulated_l1.py::test_a_transaction_beyond_the_da_footprint_waits_for_the_"
    "next_block": ALONE,
    "unit/wire/test_feed_formats.py": ALONE,
    "unit/storage": "it is about chains in directories and about files, where no fork lies",
    "unit/sync": "its followers hold the whole state; one on a fork executes what it fetches",
    "unit/simulate/test_many.py::test_payloads_are_read_only_as_far_ahead_as_needed":
        "bundles on a fork are read ahead, so that they share what they miss",
    "unit/simulate/test_many.py::test_the_state_is_sent_once_and_then_only_payloads":
        "workers of a fork get what was fetched since the last bundle",
    "unit/node/test_op_stack.py::test_published_deposits_are_sealed_after_the_end_of_the_process":
        "it keeps its chain in a directory, which no fork does",
}  # fmt: skip
"""Beginning of a test's name -> why the test makes no sense above a remote state."""

OwnEVM, OwnLayer = fastevm.evm.machine.EVM, fastevm.core.state.layer.Layer
own_remote = Node._new_remote


def nothing() -> OwnLayer:
    """Returns a remote state without accounts, from which no value is fetched yet."""
    return OwnLayer.remote(Recorded({}))


class KindOfOwn(type):
    """Metaclass of replacements: objects of the original class count as instances, too."""

    def __instancecheck__(cls, item: object) -> bool:
        return isinstance(item, cls.__mro__[1])


class ForkedLayer(OwnLayer, metaclass=KindOfOwn):
    """Replaces `Layer`: every layer has a remote state below it."""

    @staticmethod
    def empty() -> OwnLayer:
        """Returns a layer without accounts above a remote state."""
        return nothing()

    @staticmethod
    def of(accounts: Mapping[bytes, Mapping[str, Any]]) -> OwnLayer:
        """Returns a layer with these accounts above an empty remote state."""
        return nothing().with_accounts(accounts)


class ForkedEVM(OwnEVM, metaclass=KindOfOwn):
    """Replaces `EVM`: it begins with an empty remote state."""

    def __init__(self, *rules: Any, state: OwnLayer | None = None, **block: Any) -> None:
        super().__init__(*rules, state=nothing() if state is None else state, **block)


class FetchedState(TransactionState):
    """Fetches the values that transactions and blocks read from a remote state, if there is one."""

    def load_sender(self, transaction: Transaction) -> None:
        """Does nothing: the pool has read the sender's account, and its value is kept."""

    def fetch(self, transaction: Transaction) -> None:
        """Fetches the values that the transaction reads."""
        if self.newest()[0].remote_state is not None:
            super().fetch(transaction)

    def prepare_block(self, parent: Header, timestamp: int) -> None:
        """Fetches the values that a block reads before its first transaction."""
        if self.newest()[0].remote_state is not None:
            super().prepare_block(parent, timestamp)

    def prepare_end(self, parent: Header, timestamp: int, run: Callable[[], object]) -> None:
        """Fetches the values that a block reads at its end."""
        if self.newest()[0].remote_state is not None:
            super().prepare_end(parent, timestamp, run)


def remote_of(node: Node, fork: ForkHistory | None) -> LocalState:
    """Returns the part of a node that fetches state. It fetches even without fork options."""
    made = own_remote(node, fork)
    made.fetcher = FetchedState(node.chain, node._newest)
    return made


def begin() -> None:
    """Replaces the classes in all modules.

    Modules that need the original C types are loaded first.
    """
    for part in pkgutil.iter_modules(fastevm.__path__, "fastevm."):
        if part.name.removeprefix("fastevm.") in NOT_LOADED:
            continue
        loaded = importlib.import_module(part.name)
        for module in pkgutil.walk_packages(getattr(loaded, "__path__", ()), f"{part.name}."):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    replaced = {id(OwnLayer): ForkedLayer, id(OwnEVM): ForkedEVM}
    for name, item in list(sys.modules.items()):
        if name.partition(".")[0] == "fastevm":
            for word, value in list(vars(item).items()):
                if id(value) in replaced:
                    setattr(item, word, replaced[id(value)])
    fastevm.Layer, fastevm.EVM = ForkedLayer, ForkedEVM
    Node._new_remote = remote_of


def leave_out(items: list[pytest.Item]) -> None:
    """Skips the tests that make no sense on a fork."""
    for item in items:
        for beginning, reason in LEFT_OUT.items():
            if item.nodeid.startswith(f"tests/{beginning}"):
                item.add_marker(pytest.mark.skip(reason=reason))
