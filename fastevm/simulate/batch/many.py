"""Simulates up to millions of independent bundles on a state, on threads or executors."""

import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import islice
from typing import Any, Final, Generic, Literal, TypeVar, Unpack, overload

from fastevm.core.simulation.values import DEFAULT_GAS_CAP, DEFAULT_TIMEOUT, SimulateOptions
from fastevm.core.state.source import Wanted, call_object
from fastevm.errors import FastevmError
from fastevm.evm.signatures import show_fields
from fastevm.rpc_types.simulate_request import payload_from
from fastevm.simulate.batch.base_block import BaseBlock
from fastevm.simulate.batch.columns import Columns, columns_of
from fastevm.simulate.batch.results import BundleResult, Results
from fastevm.simulate.batch.shipping import Shipment, run_shipped
from fastevm.simulate.views import BLOCK_OPTIONS, BlockOptions, as_view, spacing_of

FIRST_CHUNK: Final = 16  # bundles; the size of later chunks follows the time of a bundle
LARGEST_CHUNK: Final = 1024
CHUNK_SECONDS: Final = 0.005
# chunks submitted in advance, so that no worker waits for the consumer
CHUNKS_PER_WORKER: Final = 4
REMOTE_CHUNK: Final = 256
LOOKED_AHEAD: Final = 256  # bundles of a window that are searched for calls to prefetch
ASKED_AHEAD: Final = 32  # most calls that the source gets for prefetching
WINDOW_CHUNKS: Final = 256  # chunks that share fetches of a remote state: 4,096 bundles

Progress = Callable[[int, int | None], None]
T = TypeVar("T")


class Simulations(Generic[T]):
    """The results of a batch in progress.

    Iterate with ``for`` or ``async for``, or await the object.

    The first results arrive before later payloads are read. A chunk has ``chunk_size`` bundles, or
    by default 16 bundles at first and then as many as run in 5 ms (at most 1,024). At most four
    chunks for each thread wait for the consumer.

    Under ``async for``, other threads read the payloads and run the bundles, so the event loop
    continues. ``await`` returns a list of all results. Each of these stops the remaining bundles:
    ``close``, leaving the iteration, and cancelling a task that awaits the results.
    """

    def __init__(
        self,
        chunks: Generator[Results, None, None],
        items: Callable[[Results], list[T]],
        cancel: Callable[[], None],
    ) -> None:
        self._chunks, self._items, self._cancel = chunks, items, cancel
        self._flow = items_of(chunks, items)

    def __iter__(self) -> Iterator[T]:
        return self._flow

    def __next__(self) -> T:
        return next(self._flow)

    async def __aiter__(self) -> AsyncIterator[T]:
        # imported here, because it is slow; a caller that awaits has already imported it
        from asyncio import to_thread

        try:
            while (results := await to_thread(next, self._chunks, None)) is not None:
                for item in self._items(results):
                    yield item
        finally:
            self._cancel()

    def __await__(self) -> Generator[Any, None, list[T]]:
        return self._all().__await__()

    async def _all(self) -> list[T]:
        from asyncio import to_thread

        try:
            return await to_thread(list, self._flow)
        finally:
            self._cancel()

    def close(self) -> None:
        """Stops the remaining bundles. There are no further results."""
        self._cancel()
        self._flow.close()
        self._chunks.close()


def items_of(
    chunks: Generator[Results, None, None], items: Callable[[Results], list[T]]
) -> Generator[T, None, None]:
    """Yields the items of all chunks. Closing this generator closes the chunks.

    This function is not a method of `Simulations`, because a method would keep its object alive in
    a reference cycle. The garbage collector would then close the chunks at any time and on any
    thread.
    """
    try:
        for results in chunks:
            yield from items(results)
    finally:
        chunks.close()


class Slicer:
    """Splits payloads into chunks of about equal time. Stops if the batch is cancelled."""

    def __init__(
        self, base_block: BaseBlock, payloads: Iterable[Any], *, fixed: int | None, share: int
    ) -> None:
        self._base_block = base_block
        self._process = os.getpid()
        self._payloads = iter(payloads)
        total = getattr(payloads, "__len__", None)
        self.total: int | None = None if total is None else total()
        self.taken = 0
        self._size = FIRST_CHUNK if fixed is None else fixed
        self._fixed = fixed is not None
        self._most = LARGEST_CHUNK
        if self.total is not None:
            self._most = max(1, min(LARGEST_CHUNK, -(-self.total // share)))

    @property
    def is_stopped(self) -> bool:
        """Returns whether the batch was cancelled. Raises RuntimeError in a forked child.

        A child process does not have the threads that run the bundles, so it would wait forever.
        """
        if os.getpid() != self._process:
            raise RuntimeError("only the process that began a batch can read its results")
        return self._base_block.is_cancelled

    def take(self) -> tuple[int, list[Any]] | None:
        """Returns the index and the payloads of the next chunk, or None at the end."""
        if self.is_stopped:
            return None
        first = self.taken
        size = self._size if self._fixed else min(self._size, self._most)
        payloads = list(islice(self._payloads, size))
        self.taken += len(payloads)
        return (first, payloads) if payloads else None

    def learn(self, count: int, seconds: float) -> None:
        """Adjusts the chunk size to the seconds that ``count`` bundles took."""
        fitting = int(count * CHUNK_SECONDS / max(seconds, 1e-9))
        self._size = self._size if self._fixed else max(1, min(fitting, self._size * 4))


class Count:
    """Counts finished bundles and reports the count to the caller."""

    def __init__(self, progress: Progress | None, total: int | None) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def add(self, results: Results) -> Results:
        """Counts results and returns them."""
        self.done += results.count
        if self.progress is not None:
            self.progress(self.done, self.total)
        return results


def here(base_block: BaseBlock, slicer: Slicer, count: Count) -> Generator[Results, None, None]:
    """Runs all chunks in this thread."""
    while (taken := slicer.take()) is not None:
        started = time.perf_counter()
        results = base_block.run(*taken)
        slicer.learn(results.count, time.perf_counter() - started)
        yield count.add(results)


def timed(base_block: BaseBlock, slicer: Slicer, first: int, payloads: list[Any]) -> Results:
    """Runs a chunk in a worker thread and measures its time."""
    started = time.perf_counter()
    results = base_block.run(first, payloads)
    slicer.learn(results.count, time.perf_counter() - started)
    return results


def on_threads(
    base_block: BaseBlock, slicer: Slicer, count: Count, threads: int, ordered: bool
) -> Generator[Results, None, None]:
    """Runs the chunks on threads of this process."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix="fastevm-simulate")
    try:
        yield from flow(
            lambda first, payloads: pool.submit(timed, base_block, slicer, first, payloads),
            slicer, count, threads * CHUNKS_PER_WORKER, ordered,
        )  # fmt: skip
    finally:
        base_block.cancel()
        # may be called by a finaliser, so it must not wait
        pool.shutdown(wait=False, cancel_futures=True)


def on_executor(
    base_block: BaseBlock, slicer: Slicer, count: Count, executor: Executor, ordered: bool
) -> Generator[Results, None, None]:
    """Runs the chunks on an executor, possibly on other machines."""
    shipment = Shipment(base_block)
    workers = getattr(executor, "_max_workers", None) or os.cpu_count() or 1

    def submit(first: int, payloads: list[Any]) -> "Future[Any]":
        return executor.submit(run_shipped, shipment.key, None, first, payloads)

    def answered(future: "Future[Any]", first: int, payloads: list[Any]) -> Results:
        results = future.result()
        if results is None and shipment.sent:
            # the worker may have received the state in the meantime
            results = submit(first, payloads).result()
        if results is None:
            shipment.sent = True
            again = executor.submit(run_shipped, shipment.key, shipment.data, first, payloads)
            results = again.result()
        assert isinstance(results, Results)
        return results

    yield from flow(submit, slicer, count, workers * CHUNKS_PER_WORKER, ordered, answered)


def asked_ahead(chunks: list[tuple[int, list[Any]]]) -> list[Mapping[str, Any]]:
    """Returns one call of each kind in the first bundles, to prefetch values of a remote state.

    Calls with the same recipient and function are of the same kind, because they usually read the
    same accounts and slots, or corresponding slots of another account.
    """
    found: dict[tuple[bytes | None, bytes], Mapping[str, Any]] = {}
    payloads = (payload for _, some in chunks for payload in some)
    for payload in islice(payloads, LOOKED_AHEAD):
        # an invalid call is reported when it runs
        with suppress(FastevmError, ValueError, TypeError, OverflowError):
            calls = (call for block in payload_from(payload).blocks for call in block.calls)
            for call in calls:
                kind = (call.to, call.data[:4])
                if kind not in found and len(found) < ASKED_AHEAD:
                    found[kind] = call_object(call.sender, call.to, call.data, call.value)
    return list(found.values())


def attempts(
    base_block: BaseBlock, chunks: list[tuple[int, list[Any]]], pool: Executor, *, shipped: bool
) -> "list[Future[Any]]":
    """Starts the chunks with the currently known values of a remote state.

    ``shipped``: the workers are other processes, to which the known values are sent.
    """
    if not shipped:
        return [pool.submit(base_block.attempt, *chunk) for chunk in chunks]
    shipment = Shipment(base_block)
    return [pool.submit(run_shipped, shipment.key, shipment.data, *chunk) for chunk in chunks]


def over_remote(
    base_block: BaseBlock, slicer: Slicer, count: Count, threads: int, executor: Executor | None
) -> Generator[Results, None, None]:
    """Runs the chunks over a remote state, window by window, until no bundle guesses.

    All chunks of a window run. Then all missing values are fetched in one request, and the chunks
    that guessed run again. Workers of an executor get the known values, but do not use the network.
    """
    remote = base_block.view.layer.remote_state
    assert remote is not None
    pool = executor or ThreadPoolExecutor(threads, thread_name_prefix="fastevm-simulate")
    try:
        while window := list(islice(iter(slicer.take, None), WINDOW_CHUNKS)):
            done: dict[int, Results] = {}
            waiting, asked = window, False
            while waiting:
                if slicer.is_stopped:
                    return
                futures = attempts(base_block, waiting, pool, shipped=executor is not None)
                missed = Wanted()
                for (first, _), future in zip(waiting, futures, strict=True):
                    found = future.result()
                    if isinstance(found, Results):
                        done[first] = found
                    elif found is not None:
                        missed.join(found)
                waiting = [chunk for chunk in waiting if chunk[0] not in done]
                if waiting:
                    if not asked:
                        missed.calls, asked = asked_ahead(window), True
                    # values missed by threads of this process are already recorded in `remote`
                    remote.fetch(missed)
            for first, _ in window:
                yield count.add(done[first])
    finally:
        base_block.cancel()
        if executor is None:
            pool.shutdown(wait=False, cancel_futures=True)  # see `on_threads`


def result_of(future: "Future[Results]", first: int, payloads: list[Any]) -> Results:
    """Returns the result of a future. This is the default of ``answered`` in `flow`."""
    return future.result()


def flow(
    submit: Callable[[int, list[Any]], "Future[Any]"],
    slicer: Slicer,
    count: Count,
    ahead: int,
    ordered: bool,
    answered: Callable[["Future[Any]", int, list[Any]], Results] = result_of,
) -> Generator[Results, None, None]:
    """Keeps ``ahead`` chunks submitted. Yields their results in order, or as they finish."""
    waiting: deque[tuple[Future[Any], int, list[Any]]] = deque()
    try:
        while True:
            while len(waiting) < ahead and (taken := slicer.take()) is not None:
                waiting.append((submit(*taken), *taken))
            if not waiting or slicer.is_stopped:
                return
            if not ordered:
                done = wait([entry[0] for entry in waiting], return_when=FIRST_COMPLETED).done
                waiting = deque(sorted(waiting, key=lambda entry: entry[0] not in done))
            yield count.add(answered(*waiting.popleft()))
    finally:
        for future, _, _ in waiting:
            future.cancel()


@overload
def simulate_many(
    state: Any,
    payloads: Iterable[Any],
    *,
    threads: int | None = None,
    executor: Executor | None = None,
    ordered: bool = True,
    columns: Literal[False] = False,
    balances: bool = False,
    progress: Progress | None = None,
    gas_cap: int = DEFAULT_GAS_CAP,
    timeout: float = DEFAULT_TIMEOUT,
    chunk_size: int | None = None,
    **block: Unpack[BlockOptions],
) -> Simulations[BundleResult]: ...


@overload
def simulate_many(
    state: Any,
    payloads: Iterable[Any],
    *,
    threads: int | None = None,
    executor: Executor | None = None,
    ordered: bool = True,
    columns: Literal[True],
    balances: bool = False,
    progress: Progress | None = None,
    gas_cap: int = DEFAULT_GAS_CAP,
    timeout: float = DEFAULT_TIMEOUT,
    chunk_size: int | None = None,
    **block: Unpack[BlockOptions],
) -> Simulations[Columns]: ...


@overload
def simulate_many(
    state: Any,
    payloads: Iterable[Any],
    *,
    threads: int | None = None,
    executor: Executor | None = None,
    ordered: bool = True,
    columns: bool,
    balances: bool = False,
    progress: Progress | None = None,
    gas_cap: int = DEFAULT_GAS_CAP,
    timeout: float = DEFAULT_TIMEOUT,
    chunk_size: int | None = None,
    **block: Unpack[BlockOptions],
) -> Simulations[BundleResult] | Simulations[Columns]: ...


def simulate_many(
    state: Any,
    payloads: Iterable[Any],
    *,
    threads: int | None = None,
    executor: Executor | None = None,
    ordered: bool = True,
    columns: bool = False,
    balances: bool = False,
    progress: Progress | None = None,
    gas_cap: int = DEFAULT_GAS_CAP,
    timeout: float = DEFAULT_TIMEOUT,
    chunk_size: int | None = None,
    **block: Unpack[BlockOptions],
) -> Simulations[Any]:
    """Simulates independent bundles on one immutable state. Returns an iterator over their results.

    - ``payloads``: payloads of eth_simulateV1 (JSON form or typed), or lists of calls for one
      block; any iterable, read only as far as the workers need
    - ``threads``: number of threads, by default one for each core; it never affects results
    - ``executor``: any `concurrent.futures.Executor` to use instead of threads; each worker
      receives the state once
    - ``ordered``: if False, yield results as they finish
    - ``columns``: yield a `Columns` per chunk instead of a `BundleResult` per bundle
    - ``balances``: record changed balances
    - ``progress``: called with the number of finished bundles and their total (None if unknown)
    - ``gas_cap``: maximum gas of all calls of one bundle
    - ``timeout``: maximum seconds for one bundle
    - ``block``: for a Layer, fields of the block (`fastevm.simulate.views.as_view`)

    Blocks are not sealed: there are no roots or hashes, and missing system contracts are not an
    error. A refused bundle has an ``error``; the other bundles run.
    """
    view = as_view(state, **block)
    options = SimulateOptions(
        zero_state_root=True, block_spacing=spacing_of(view), gas_cap=gas_cap, timeout=timeout
    )
    base_block = BaseBlock(view, options, balances=balances)
    threads = threads or os.cpu_count() or 1
    chunks = chunks_of(base_block, payloads, threads, executor, ordered, progress, chunk_size)
    return Simulations(chunks, _as_columns if columns else _as_results, base_block.cancel)


show_fields(simulate_many, dict.fromkeys(BLOCK_OPTIONS))


def chunks_of(
    base_block: BaseBlock,
    payloads: Iterable[Any],
    threads: int,
    executor: Executor | None,
    ordered: bool,
    progress: Progress | None,
    chunk_size: int | None,
) -> Generator[Results, None, None]:
    """Returns a generator of results, computed in this thread, on threads, or on the executor."""
    size = chunk_size or (REMOTE_CHUNK if executor is not None else None)
    slicer = Slicer(base_block, payloads, fixed=size, share=threads * CHUNKS_PER_WORKER * 2)
    count = Count(progress, slicer.total)
    if base_block.view.layer.remote_state is not None:
        return over_remote(base_block, slicer, count, threads, executor)
    if executor is not None:
        return on_executor(base_block, slicer, count, executor, ordered)
    if threads == 1:
        return here(base_block, slicer, count)
    return on_threads(base_block, slicer, count, threads, ordered)


def _as_columns(results: Results) -> list[Columns]:
    return [columns_of(results)]


def _as_results(results: Results) -> list[BundleResult]:
    return results.results()
