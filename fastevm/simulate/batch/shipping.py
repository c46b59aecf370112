"""Runs batches on other processes and machines.

A worker gets the state once, then only payloads.
"""

import hashlib
import os
import pickle
import threading
from collections import OrderedDict
from typing import Any, Final

from fastevm.core.primitives.replace import replace
from fastevm.core.simulation.values import SimulateOptions, StateView
from fastevm.core.state.shipping import ship, unship
from fastevm.core.state.source import Wanted
from fastevm.simulate.batch.base_block import BaseBlock
from fastevm.simulate.batch.results import Results

KEPT_BASE_BLOCKS: Final = 4  # most states that a worker process keeps

_base_blocks: "OrderedDict[bytes, BaseBlock]" = OrderedDict()
_lock = threading.Lock()


def _after_fork() -> None:
    """Replaces the lock in a child process after a fork.

    If the lock was held at the fork, no thread of the child would release it.
    """
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


class Shipment:
    """A base block as bytes. Workers keep it under ``key``, a hash of these bytes.

    ``sent``: whether a worker has received the bytes.
    """

    def __init__(self, base_block: BaseBlock) -> None:
        state = ship(base_block.view.layer)
        view = replace(base_block.view, layer=None)
        self.data = pickle.dumps((state, view, base_block.options, base_block.balances))
        self.sent = False
        self.key = hashlib.blake2b(self.data, digest_size=32).digest()


def run_shipped(
    key: bytes, data: bytes | None, first: int, payloads: list[Any]
) -> Results | Wanted | None:
    """Runs bundles in a worker. Returns their results, or None if the worker needs ``data`` first.

    If the bundles read unknown values of a remote state, returns the keys of these values instead.
    """
    base_block = _base_block(key, data)
    if base_block is None:
        return None
    results = base_block.attempt(first, payloads)
    remote = base_block.view.layer.remote_state
    return remote.take_missing() if results is None and remote is not None else results


def _base_block(key: bytes, data: bytes | None) -> BaseBlock | None:
    with _lock:
        found = _base_blocks.get(key)
        if found is None and data is not None:
            found = _base_blocks[key] = _unpacked(data)
            while len(_base_blocks) > KEPT_BASE_BLOCKS:
                _base_blocks.popitem(last=False)
        return found


def _unpacked(data: bytes) -> BaseBlock:
    view: StateView
    options: SimulateOptions
    state, view, options, balances = pickle.loads(data)
    return BaseBlock(replace(view, layer=unship(state)), options, balances=balances)
