"""What all bundles of a batch stand on, made once: their block, and engines to run them."""

import threading
from dataclasses import replace
from typing import Any

from fastevm.simulate.blocks import drafted
from fastevm.simulate.chunk import Chunk
from fastevm.simulate.deadline import WATCHDOG
from fastevm.simulate.engine import Engine
from fastevm.simulate.environment import environment_of
from fastevm.simulate.runner import Runner
from fastevm.simulate.values import BlockOverrides, SimulateOptions, StateView


class BundleLimit:
    """Lets the watchdog look at an engine at every turn: each of its bundles has its own time."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def cancel(self) -> None:
        """Stop the bundle under way if its time is up."""
        self.engine.stop_overdue()

    def rearm(self) -> None:
        """Nothing to forget."""


class Ground:
    """A view and the block after it, ready for bundles in any thread.

    The state is that after the block's first system calls. A thread borrows an engine for each
    chunk and gives it back, so that there are as many engines as chunks at once.
    """

    def __init__(self, view: StateView, options: SimulateOptions, *, balances: bool) -> None:
        self.view, self.options, self.balances = view, options, balances
        parent = view.header
        number, time = parent.number + 1, parent.timestamp + options.block_spacing
        merged = bool(view.schedule.parameters["proof_of_stake"])
        schedule = view.config.activations.at(number, time, after_merge=merged)
        overrides = BlockOverrides(number=number, time=time)
        draft = drafted(parent, schedule, overrides, merged=merged, validation=False)
        ancestors = (view.block_hash, *view.ancestors)[:256]
        self.base = replace(view, schedule=schedule, ancestors=ancestors)
        self.environment = environment_of(draft, schedule, view.config.chain_id, BlockOverrides())
        runner = Runner()
        runner.open(replace(self.base, header=draft), environment=self.environment)
        runner.begin()
        self.layer = runner.snapshot()
        self._lock = threading.Lock()
        self._idle: list[Engine] = []
        self._all: list[Engine] = []

    def run(self, first: int, payloads: list[Any]) -> Chunk:
        """The results of these bundles; ``first`` is the position of the first one among all."""
        engine = self._borrow()
        limit = BundleLimit(engine)
        WATCHDOG.begin(limit, 0.0)
        try:
            chunk = engine.run(first, payloads)
        finally:
            WATCHDOG.end(limit)
        with self._lock:
            self._idle.append(engine)
        return chunk

    def cancel(self) -> None:
        """Stop everything that runs on this ground."""
        with self._lock:
            for engine in self._all:
                engine.cancel()

    def _borrow(self) -> Engine:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            engine = Engine(
                self.view, self.base, self.layer, self.environment, self.options, self.balances
            )
            self._all.append(engine)
            return engine
