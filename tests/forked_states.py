"""``pytest --forked``: every state that a test makes lies above a remote state without accounts."""

import contextlib
import importlib
import pkgutil
import sys
from collections.abc import Mapping
from typing import Any

import fastevm
import fastevm.evm
import fastevm.state.layer
from fastevm.conformance.pre_states import Recorded

OwnEVM, OwnLayer = fastevm.evm.EVM, fastevm.state.layer.Layer


def nothing() -> OwnLayer:
    """A remote state without accounts, of which nothing is known."""
    return OwnLayer.remote(Recorded({}))


class ForkedLayer(OwnLayer):
    """The class of layers, whose first ones are forks."""

    @staticmethod
    def empty() -> OwnLayer:
        """A fork of nothing."""
        return nothing()

    @staticmethod
    def of(accounts: Mapping[bytes, Mapping[str, Any]]) -> OwnLayer:
        """Accounts above a fork of nothing."""
        return nothing().with_accounts(accounts)


class ForkedEVM(OwnEVM):
    """A machine that begins with a fork where it would begin with nothing."""

    def __init__(self, *rules: Any, state: OwnLayer | None = None, **block: Any) -> None:
        super().__init__(*rules, state=nothing() if state is None else state, **block)


def begin() -> None:
    """Give these classes to everybody, once all modules are loaded that need the others in C."""
    for module in pkgutil.walk_packages(fastevm.__path__, "fastevm."):
        if module.name.split(".")[1] not in ("rpc", "bench", "payments", "__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    replaced = {id(OwnLayer): ForkedLayer, id(OwnEVM): ForkedEVM}
    for name, loaded in list(sys.modules.items()):
        if name.partition(".")[0] == "fastevm":
            for word, value in list(vars(loaded).items()):
                if id(value) in replaced:
                    setattr(loaded, word, replaced[id(value)])
    fastevm.Layer, fastevm.EVM = ForkedLayer, ForkedEVM
