"""The block in which all bundles of a batch run, and runners that execute bundles in it."""

import threading
from typing import Any

from fastevm.core.primitives.replace import replace
from fastevm.core.simulation.deadline import WATCHDOG, Deadline
from fastevm.core.simulation.environment import environment_of
from fastevm.core.simulation.runner import Runner
from fastevm.core.simulation.values import SimulateOptions, StateView
from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import resolved
from fastevm.simulate.batch.bundle_runner import BundleRunner
from fastevm.simulate.batch.drafts import draft_of
from fastevm.simulate.batch.results import Results


class BundleLimit(Deadline):
    """A deadline that the watchdog checks at every tick, because each bundle has its own
    deadline.
    """

    def __init__(self, runner: BundleRunner) -> None:
        super().__init__()
        self.runner = runner

    def expire(self) -> None:
        """Stops the current bundle if its time is over."""
        self.runner.stop_overdue()


class BaseBlock:
    """The block in which the bundles of a batch run, and the state on which it is built (``view``).

    ``layer`` is the state after the system calls at the block's start. A thread borrows a runner
    for each chunk of bundles and returns it, so there are as many runners as chunks run at the same
    time.
    """

    def __init__(self, view: StateView, options: SimulateOptions, *, balances: bool) -> None:
        self.view, self.options, self.balances = view, options, balances
        parent = view.header
        own = view.next_block
        number = parent.number + 1
        time = parent.timestamp + options.block_spacing if own.time is None else own.time
        merged = bool(view.schedule.parameters["proof_of_stake"])
        schedule = view.config.activations.at(number, time, after_merge=merged)
        draft = draft_of(parent, schedule, time, own, validation=False)
        ancestors = (view.block_hash, *view.ancestors)[:256]
        self.base = replace(view, schedule=schedule, ancestors=ancestors)
        self.environment = environment_of(draft, schedule, view.config.chain_id, own)

        def begun() -> Layer:
            runner = Runner()
            runner.open(replace(self.base, header=draft), environment=self.environment)
            runner.begin()
            return runner.snapshot()

        self.layer = resolved(view.layer, begun)
        self._lock = threading.Lock()
        self._idle: list[BundleRunner] = []
        self._all: list[BundleRunner] = []
        self.is_cancelled = False

    def run(self, first: int, payloads: list[Any]) -> Results:
        """Returns the results of these bundles.

        ``first``: index of the first of these bundles among all bundles of the batch.
        """
        runner = self._borrow()
        limit = BundleLimit(runner)
        WATCHDOG.begin(limit)
        try:
            results = runner.run(first, payloads)
        finally:
            WATCHDOG.end(limit)
        with self._lock:
            self._idle.append(runner)
        return results

    def attempt(self, first: int, payloads: list[Any]) -> Results | None:
        """Works like `run`, but fetches nothing: uses only the known values of a remote state.

        Returns None if a bundle read an unknown value and therefore guessed it.
        """
        remote = self.view.layer.remote_state
        if remote is None:
            return self.run(first, payloads)
        results, guessed = remote.attempt(lambda: self.run(first, payloads))
        return None if guessed else results

    def cancel(self) -> None:
        """Stops all bundles of this block permanently.

        Takes no lock, because a finaliser may call it.
        """
        self.is_cancelled = True
        for runner in tuple(self._all):
            runner.cancel()

    def _borrow(self) -> BundleRunner:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            runner = BundleRunner(
                self.view, self.base, self.layer, self.environment, self.options, self.balances
            )
            self._all.append(runner)
            if self.is_cancelled:  # `cancel` ran before this runner was added
                runner.cancel()
            return runner
