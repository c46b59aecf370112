"""Updates the answers of many calls and bundles as the state changes."""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import Any, Final, Literal, Unpack

from msgspec import Struct

from fastevm.core.simulation.deadline import WATCHDOG, Deadline
from fastevm.core.simulation.environment import environment_of
from fastevm.core.simulation.values import (
    DEFAULT_GAS_CAP,
    DEFAULT_TIMEOUT,
    NO_BLOCK_OVERRIDES,
    CallRequest,
    SimulateOptions,
    SimulatePayload,
    StateView,
)
from fastevm.core.state.remote import resolved
from fastevm.errors import ResourceLimitError
from fastevm.simulate.batch.base_block import BaseBlock
from fastevm.simulate.batch.results import Results
from fastevm.simulate.views import BlockOptions, as_view, spacing_of
from fastevm.simulate.watch.base import Base
from fastevm.simulate.watch.change import Change
from fastevm.simulate.watch.columns import WatchColumns, columns_of
from fastevm.simulate.watch.engine import Engine, Job, Worker
from fastevm.simulate.watch.streams import Stream
from fastevm.simulate.watch.view import View

MAX_QUESTIONS: Final = 1_000_000
KEPT_BASES: Final = 64  # number of bases whose identity is kept, besides the bases of stale answers
MAX_THREADS: Final = 64

OPTIONS: Final = (
    "threads", "gas_cap", "timeout", "balances", "shows_base_fee", "max_questions", "_block",
)  # fmt: skip
COUNTS: Final = ("_advances", "_touched", "_ran", "_kept", "_late", "_seconds")

Block = Literal["own", "next"]


class WatchCounters(Struct, frozen=True, kw_only=True):
    """Counters of a watch.

    ``keys``: distinct values that are read; ``reads``: reads of all questions; ``memory``: bytes of
    questions, answers and index; ``advances``: calls of `Watch.advance`; ``touched``: questions
    whose reads changed; ``ran``: runs; ``unchanged``: runs that gave the same answer as before;
    ``kept``: answers that stayed valid without a run; ``stale``: questions that now wait for a run;
    ``late``: how often a question missed its budget; ``seconds``: total time of `Watch.advance` and
    `Watch.refresh`; ``last_seconds``: time of the last call of either.
    """

    questions: int
    keys: int
    reads: int
    memory: int
    advances: int
    touched: int
    ran: int
    unchanged: int
    kept: int
    stale: int
    late: int
    seconds: float
    last_seconds: float


class Changes(list[Change]):
    """The changes of one step, by priority.

    ``base``: the current base. ``touched``: number of questions whose reads changed. ``ran``:
    number of runs. ``stale``: number of questions that still wait. ``seconds``: the time of the
    step.
    """

    base: Base | None = None
    touched = 0
    ran = 0
    stale = 0
    seconds = 0.0


class WatchLimit(Deadline):
    """A deadline that the watchdog checks at every tick, because each question has its own time
    limit.
    """

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self.worker = worker

    def expire(self) -> None:
        """Stops the current question if its time is over."""
        self.worker.stop_overdue()


class Watch:
    """Calls and bundles ("questions") whose answers are updated when the state changes.

    - ``base``: a state as for `fastevm.simulate.simulate_many`, or None until `advance`
    - ``threads``: number of threads that run questions without the GIL; does not affect answers
    - ``gas_cap``: maximum gas of all calls of one question (0: only the block's limit)
    - ``timeout``: maximum seconds for one question
    - ``balances``: answers contain changes of balances
    - ``shows_base_fee``: whether BASEFEE returns the block's base fee in a call without a gas price
      in the block of the base; otherwise it returns 0
    - ``block``: for a Layer, fields of the block; see `fastevm.simulate.views.as_view`

    An answer equals that of a full run on its base. `advance` runs only questions whose reads
    changed, and returns the answers that changed. Thread-safe.
    """

    def __init__(
        self,
        base: Any = None,
        *,
        threads: int = 1,
        gas_cap: int = DEFAULT_GAS_CAP,
        timeout: float = DEFAULT_TIMEOUT,
        balances: bool = False,
        shows_base_fee: bool = True,
        max_questions: int = MAX_QUESTIONS,
        **block: Unpack[BlockOptions],
    ) -> None:
        if not 1 <= threads <= MAX_THREADS:
            raise ValueError(f"threads is a number from 1 to {MAX_THREADS}, not {threads}")
        self.threads, self.gas_cap, self.timeout = threads, gas_cap, timeout
        self.balances, self.shows_base_fee = balances, shows_base_fee
        self.max_questions = max_questions
        self._block = block
        self._engine = Engine()
        self._open()
        if base is not None:
            self.advance(base)

    def _open(self) -> None:
        """Creates the attributes that are not pickled."""
        self._turn = threading.Lock()  # held by one step at a time
        self._lock = threading.RLock()  # guards questions and answers; not held while questions run
        self._pool: ThreadPoolExecutor | None = None
        self._workers: list[Worker] = []
        self._streams: tuple[Stream, ...] = ()
        self._is_closed = False
        self._process = os.getpid()
        self._view: StateView | None = None
        self._stands: dict[bool, int] = {}  # is_own -> sequence of the base
        self._built: dict[bool, Any] = {}  # is_own -> arguments of the runners
        self._bases: dict[int, Base] = {}
        self._sequence = 0
        self._advances = self._touched = self._ran = self._kept = self._late = 0
        self._seconds = self._last_seconds = 0.0

    # ------------------------------------------------------------------------------------------
    # questions

    def add(self, question: Any, *, priority: int = 0, block: Block | None = None) -> int:
        """Adds a question and returns its id. It runs with the next `refresh` or `advance`.

        - ``question``: a call (a JSON object or a `CallRequest`), a bundle (a list of calls), a
          payload of eth_simulateV1 (a JSON object or a `SimulatePayload`), or a `View`
        - ``priority``: questions with a higher priority run first
        - ``block``: "own" runs the question in the block of the base, like eth_call; "next" runs it
          in the block after the base, like eth_simulateV1. The default is "own" for a call or a
          `View`, else "next".

        Raises ValueError or TypeError for an invalid question, ResourceLimitError if there are too
        many. A refused question has an answer with an ``error``.
        """
        return self.add_many((question,), priority=priority, block=block)[0]

    def add_many(
        self, questions: Iterable[Any], *, priority: int = 0, block: Block | None = None
    ) -> list[int]:
        """Adds either all of these questions or none. See `add`."""
        if block not in (None, "own", "next"):
            raise ValueError(f'block is "own" or "next", not {block!r}')
        read = []
        for index, question in enumerate(questions):
            try:
                read.append(_read(question, block))
            except TypeError as error:
                raise TypeError(f"questions[{index}]: {error}") from None
        with self._lock:
            if len(self._engine.positions) + len(read) > self.max_questions:
                raise ResourceLimitError(
                    "max_questions",
                    f"a watch has at most {self.max_questions:,} questions (max_questions)",
                )
            return [
                self._engine.add(payload, pickle.dumps((payload, view, own)), priority, own, view)
                for payload, view, own in read
            ]

    def remove(self, ids: Iterable[int]) -> None:
        """Removes questions. Ignores unknown ids.

        Streams get no more changes of these questions.
        """
        with self._lock:
            found = self._engine.remove(ids)
            for stream in self._streams:
                stream.forget(found)

    def set_priority(self, id: int, priority: int) -> None:
        """Changes the priority of a question. Raises KeyError for an unknown id."""
        with self._lock:
            self._engine.set_priority(id, priority)

    def __len__(self) -> int:
        return len(self._engine.positions)

    def __contains__(self, id: object) -> bool:
        return id in self._engine.positions

    # ------------------------------------------------------------------------------------------
    # steps

    @property
    def base(self) -> Base | None:
        """The current base, or None before the first `advance`."""
        return self._bases.get(self._sequence)

    def advance(
        self, base: Any, *, slice_index: int | None = None, budget: float | None = None
    ) -> Changes:
        """Moves to another base and runs the questions whose reads changed.

        ``base`` may be any state: the next slice, a block, a reorganised chain. ``slice_index``:
        copied to `Base`. ``budget``: seconds after which the remaining questions stay stale; they
        run first in the next step. Returns the answers that changed.
        """
        started = time.perf_counter()
        view = as_view(base, **({} if isinstance(base, StateView) else self._block))
        with self._turn:
            self._check()
            with self._lock:
                self._sequence += 1
                self._advances += 1
                name = Base(
                    sequence=self._sequence,
                    number=view.header.number,
                    hash=view.block_hash,
                    slice_index=slice_index,
                )
                self._bases[self._sequence] = name
                self._forget_bases()
                self._engine.begin(self._sequence)
                self._view = view
            return self._step(started, budget, is_advance=True)

    def refresh(self, *, budget: float | None = None) -> Changes:
        """Runs waiting questions on the current base. Raises RuntimeError if there is no base."""
        started = time.perf_counter()
        with self._turn:
            self._check()
            if self._view is None:
                raise RuntimeError("the watch has no base yet: call advance(base)")
            return self._step(started, budget, is_advance=False)

    def _check(self) -> None:
        if self._is_closed:
            raise RuntimeError("the watch is closed")
        if os.getpid() != self._process:
            raise RuntimeError("a watch cannot be used in a forked process; pickle it instead")

    def _step(self, started: float, budget: float | None, *, is_advance: bool) -> Changes:
        engine, view = self._engine, self._view
        assert view is not None
        with self._lock:
            waited = engine.waiting
        for own in (True, False):
            self._rebase(own, view)
        changes = Changes()
        with self._lock:
            changes.touched = engine.waiting - waited if is_advance else 0
            self._touched += changes.touched
            if is_advance:
                self._kept += len(engine.positions) - engine.waiting
            left = None if budget is None else budget - (time.perf_counter() - started)
            job = engine.job(left)
        chains: list[Results | None] = []
        try:
            if self._run(job, view):
                chains = self._run_chains(job, view)
        finally:
            with self._lock:
                name = self._bases[self._sequence]
                before = engine.waiting
                changes += engine.publish(job, name)
                for (position, _), results in zip(job.chains, chains, strict=False):
                    change = engine.publish_chain(position, name, results)
                    if change is not None:
                        changes.append(change)
                for position, _ in job.chains[len(chains) :]:
                    engine.postpone(position)
                changes.ran = len(job) - (engine.waiting - before)
                stale = engine.end(self._bases.get)
                changes.stale = engine.waiting
                changes += stale
                changes.base = name
                self._ran += changes.ran
                self._late += len(stale)
                if changes:
                    for stream in self._streams:
                        stream.put(changes)
                changes.seconds = self._last_seconds = time.perf_counter() - started
                self._seconds += changes.seconds
        return changes

    # --- bases ---

    def _options(self, view: StateView) -> SimulateOptions:
        return SimulateOptions(
            zero_state_root=True,
            block_spacing=spacing_of(view),
            gas_cap=self.gas_cap,
            timeout=self.timeout,
        )

    def _rebase(self, own: bool, view: StateView) -> None:
        """Makes the questions of one kind of block ("own" or "next") use the current base."""
        engine = self._engine
        count = engine.own_count if own else engine.next_count
        if count == 0 or self._stands.get(own) == self._sequence:
            return
        if own:
            base, layer = view, view.layer
            environment = environment_of(
                view.header, view.schedule, view.config.chain_id, NO_BLOCK_OVERRIDES
            )
        else:
            block = BaseBlock(view, self._options(view), balances=self.balances)
            base, layer, environment = block.base, block.layer, block.environment
        comparison = engine.own if own else engine.next
        with self._lock:
            comparison.move(layer, base, view.block_hash, environment)
        self._stands[own] = self._sequence
        self._built[own] = (view, base, layer, environment)
        for worker in self._workers:
            self._reopen(worker, own)

    def _reopen(self, worker: Worker, own: bool) -> None:
        arguments = self._built.get(own)
        if arguments is None:
            return
        worker.stand_on(
            own,
            *arguments,
            options=self._options(arguments[0]),
            balances=self.balances,
            shows_base_fee=self.shows_base_fee,
        )

    def _forget_bases(self) -> None:
        if len(self._bases) <= KEPT_BASES:
            return
        used = self._engine.sequences()
        oldest = self._sequence - KEPT_BASES // 2
        self._bases = {
            sequence: base
            for sequence, base in self._bases.items()
            if sequence > oldest or sequence in used
        }

    # --- runs ---

    def _run(self, job: Job, view: StateView) -> bool:
        """Runs the questions of a job on threads. Returns False if the watch was closed."""
        if len(job) == len(job.chains):
            return not self._is_closed
        remote = view.layer.remote_state
        count = 1 if remote is not None else min(self.threads, -(-len(job) // 8))
        while len(self._workers) < count:
            worker = Worker()
            for own in (True, False):
                self._reopen(worker, own)
            self._workers.append(worker)
        if remote is not None:
            resolved(view.layer, partial(self._run_again, job))
        elif count == 1:
            self._work(self._workers[0], job)
        else:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="fastevm-watch")
            others = [
                self._pool.submit(self._work, worker, job) for worker in self._workers[1:count]
            ]
            self._work(self._workers[0], job)
            wait(others)
            for other in others:
                other.result()
        return not self._is_closed

    def _run_again(self, job: Job) -> None:
        job.rewind()
        self._work(self._workers[0], job)

    def _work(self, worker: Worker, job: Job) -> None:
        limit = WatchLimit(worker)
        WATCHDOG.begin(limit)
        try:
            worker.run(job)
        finally:
            WATCHDOG.end(limit)

    def _run_chains(self, job: Job, view: StateView) -> list[Results | None]:
        """Runs simulated chains while the job has budget.

        The result of an invalid payload is None.
        """
        found: list[Results | None] = []
        block: BaseBlock | None = None
        for position, _ in job.chains:
            if job.is_over or self._is_closed:
                break
            question = self._engine.chain_question(position)
            if question is None:
                found.append(None)
                continue
            if block is None:
                block = BaseBlock(view, self._options(view), balances=self.balances)
            found.append(resolved(view.layer, partial(block.run, 0, [question])))
        return found

    # ------------------------------------------------------------------------------------------
    # answers

    def answer(self, id: int) -> Change:
        """Returns the current answer to a question. Raises KeyError for an unknown id."""
        with self._lock:
            return self._engine.standing_of(id, self._bases.get)

    def snapshot(self, ids: Iterable[int] | None = None) -> tuple[Base | None, list[Change]]:
        """Returns the current base and the current answers to these questions (default: all).

        Unknown ids are ignored.
        """
        with self._lock:
            known = self._engine.positions
            wanted = list(known) if ids is None else [id for id in ids if id in known]
            return self.base, [self._engine.standing_of(id, self._bases.get) for id in wanted]

    def columns(self, ids: Iterable[int] | None = None) -> WatchColumns:
        """Returns the current answers to these questions (default: all) as columns."""
        return columns_of(self.snapshot(ids)[1])

    def stream(self, ids: Iterable[int] | None = None, *, snapshot: bool = False) -> Stream:
        """Returns a stream of future changes of these questions (default: all).

        ``snapshot``: the stream begins with the current answers.
        """
        made = Stream(ids, self._drop_stream)
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the watch is closed")
            self._streams = (*self._streams, made)
            if snapshot:
                made.put(change for change in self.snapshot(ids)[1] if change.answer is not None)
        return made

    def _drop_stream(self, stream: Stream) -> None:
        with self._lock:
            self._streams = tuple(one for one in self._streams if one is not stream)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.stream())

    def __aiter__(self) -> AsyncIterator[Change]:
        return self.stream().__aiter__()

    @property
    def counters(self) -> WatchCounters:
        """Returns the counters of the watch."""
        with self._lock:
            engine = self._engine
            return WatchCounters(
                questions=len(engine.positions),
                keys=engine.own.keys + engine.next.keys,
                reads=engine.own.reads + engine.next.reads,
                memory=engine.memory,
                advances=self._advances,
                touched=self._touched,
                ran=self._ran,
                unchanged=engine.unchanged,
                kept=self._kept,
                stale=engine.waiting,
                late=self._late,
                seconds=self._seconds,
                last_seconds=self._last_seconds,
            )

    def __getstate__(self) -> dict[str, Any]:
        """Returns questions, answers and the values that they read, without the state and
        streams.
        """
        with self._turn, self._lock:
            return {
                "options": {name: getattr(self, name) for name in OPTIONS},
                "engine": self._engine.saved(),
                "bases": self._bases,
                "sequence": self._sequence,
                "counts": {name: getattr(self, name) for name in COUNTS},
            }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restores a watch. The next call must be `advance`."""
        for name, value in state["options"].items():
            setattr(self, name, value)
        self._engine = Engine()
        self._engine.restore(state["engine"])
        self._open()
        self._bases, self._sequence = state["bases"], state["sequence"]
        for name, value in state["counts"].items():
            setattr(self, name, value)

    def close(self) -> None:
        """Stops running questions and closes all streams."""
        self._is_closed = True
        for worker in tuple(self._workers):
            worker.cancel()
        for stream in self._streams:
            stream.close()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _read(question: Any, block: Block | None) -> tuple[Any, View | None, bool]:
    """Returns a question's payload and view, and whether the question runs in the block of the
    base.
    """
    if isinstance(question, View):
        return [question.request], question, block != "next"
    if isinstance(question, CallRequest):
        return [question], None, block != "next"
    if isinstance(question, Mapping) and "blockStateCalls" not in question:
        return [dict(question)], None, block != "next"
    if isinstance(question, Mapping | SimulatePayload | list | tuple):
        return question, None, block == "own"
    raise TypeError(
        f"a question is a call, a list of calls, a payload or a View, not {type(question).__name__}"
    )
