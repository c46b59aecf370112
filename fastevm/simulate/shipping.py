"""Batches on other processes and machines: a worker gets the state once, then only payloads."""

import copyreg
import hashlib
import pickle
import threading
from collections import OrderedDict
from dataclasses import replace
from typing import Any, Final

from fastevm.simulate.chunk import Chunk
from fastevm.simulate.ground import Ground
from fastevm.simulate.values import SimulateOptions, StateView
from fastevm.spec.schedule import ForkSchedule, schedule_for
from fastevm.state.shipping import pack_layer, unpack_layer

KEPT_GROUNDS: Final = 4  # states that one worker process keeps at a time

_grounds: "OrderedDict[bytes, Ground]" = OrderedDict()
_lock: Final = threading.Lock()


class Shipment:
    """A ground as bytes, and the key under which workers keep it: a hash of those bytes.

    ``sent``: whether some worker got the bytes already.
    """

    def __init__(self, ground: Ground) -> None:
        state = pack_layer(ground.view.layer)
        view = replace(ground.view, layer=None)
        self.data = pickle.dumps((state, view, ground.options, ground.balances))
        self.sent = False
        self.key = hashlib.blake2b(self.data, digest_size=32).digest()


def run_shipped(key: bytes, data: bytes | None, first: int, payloads: list[Any]) -> Chunk | None:
    """In a worker: the results of these bundles, or None when it needs ``data`` first."""
    ground = _ground(key, data)
    return None if ground is None else ground.run(first, payloads)


def _ground(key: bytes, data: bytes | None) -> Ground | None:
    with _lock:
        found = _grounds.get(key)
        if found is None and data is not None:
            found = _grounds[key] = _unpacked(data)
            while len(_grounds) > KEPT_GROUNDS:
                _grounds.popitem(last=False)
        return found


def _unpacked(data: bytes) -> Ground:
    view: StateView
    options: SimulateOptions
    state, view, options, balances = pickle.loads(data)
    return Ground(replace(view, layer=unpack_layer(state)), options, balances=balances)


def _reduce_schedule(schedule: ForkSchedule) -> tuple[Any, ...]:
    return _schedule, (schedule.name, schedule.blobs)


def _schedule(name: str, blobs: Any) -> ForkSchedule:
    return schedule_for(name, blobs=blobs)


copyreg.pickle(ForkSchedule, _reduce_schedule)
