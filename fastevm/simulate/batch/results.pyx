"""Results of consecutive bundles: C records, from which Python values are created on access."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t
from libc.string cimport memset

from fastevm.core.interpreter.status cimport OUT_OF_GAS, REVERTED, STOPPED
from fastevm.core.primitives.buffer cimport Buffer, buffer_append, buffer_free
from fastevm.core.primitives.word cimport word_store, word_to_int
from fastevm.core.simulation.records cimport (
    CallRecord,
    record_at,
    record_outcome,
    records_count,
    records_free,
)

from array import array
from fastevm.core.primitives.replace import replace

from fastevm.core.simulation.values import CallOutcome
from fastevm.errors import ExecutionFailed

SIGN = 1 << 255
MODULUS = 1 << 256


cdef bytes content(const Buffer* buffer):
    return PyBytes_FromStringAndSize(<const char*>buffer.bytes, <Py_ssize_t>buffer.size)


cdef int refill(Buffer* buffer, bytes data) except -1:
    if data is None:
        raise TypeError("a part of a pickled result is bytes, not None")
    if not buffer_append(buffer, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data)):
        raise MemoryError
    return 0


cdef class Results:
    """The results of consecutive bundles. A `BundleResult` keeps all of them in memory."""

    def __cinit__(self) -> None:
        self.faults = {}
        self.apart = {}

    def __dealloc__(self) -> None:
        buffer_free(&self.bundles)
        buffer_free(&self.deltas)
        records_free(&self.calls)

    def __reduce__(self) -> object:
        buffers = (
            content(&self.bundles), content(&self.calls.calls), content(&self.calls.output),
            content(&self.calls.logs), content(&self.calls.log_data), content(&self.deltas),
        )
        return restore_results, (self.first, self.count, self.faults, self.apart, buffers)

    cdef BundleRecord* bundle(self, size_t at) noexcept:
        return &(<BundleRecord*>self.bundles.bytes)[at]

    def results(self) -> list[BundleResult]:
        """Returns a result for each bundle, in order."""
        cdef list found = []
        cdef BundleResult result
        cdef Py_ssize_t i
        for i in range(self.count):
            result = BundleResult.__new__(BundleResult)
            result.results = self
            result.at = i
            found.append(result)
        return found

    cdef int add_outcome(self, object outcome) except -1:
        """Appends a record for a call of a bundle that ran as a chain."""
        cdef CallRecord record
        memset(&record, 0, sizeof(CallRecord))
        record.status = STOPPED if outcome.success else REVERTED if outcome.reverted else OUT_OF_GAS
        record.gas_used = outcome.gas_used
        record.max_used_gas = outcome.max_used_gas
        record.output_at = self.calls.output.size
        record.output_size = len(outcome.output)
        refill(&self.calls.output, outcome.output)
        if not buffer_append(&self.calls.calls, &record, sizeof(CallRecord)):
            raise MemoryError
        return 0

    cdef int add_apart(self, size_t at, tuple outcomes) except -1:
        cdef BundleRecord* record = self.bundle(at)
        record.first_call = records_count(&self.calls)
        record.call_count = len(outcomes)
        record.gas_used = sum([outcome.gas_used for outcome in outcomes])
        record.succeeded = all([outcome.success for outcome in outcomes])
        for outcome in outcomes:
            self.add_outcome(outcome)
        self.apart[at] = outcomes
        return 0

    def columns(self) -> dict[str, object]:
        """Returns the outcomes as packed columns, with the calls in the order of their bundles.

        - ``calls``: uint64, index of each bundle's first call, then the number of calls
        - ``status``: uint8, 1 = success, 2 = revert, 3 = halt
        - ``gas_used``, ``max_used_gas``: uint64
        - ``offsets``: uint64, offset of each call's output, then the size of all outputs
        - ``output``: bytes
        """
        cdef const BundleRecord* bundle
        cdef const CallRecord* call
        cdef size_t i, j
        starts, offsets = array("Q", [0]), array("Q", [0])
        status, gas, most = array("B"), array("Q"), array("Q")
        output = bytearray()
        for i in range(<size_t>self.count):
            bundle = self.bundle(i)
            for j in range(bundle.first_call, bundle.first_call + bundle.call_count):
                call = record_at(&self.calls, j)
                status.append(1 if call.status == STOPPED else 2 if call.status == REVERTED else 3)
                gas.append(call.gas_used)
                most.append(call.max_used_gas)
                if call.output_size:
                    output += (self.calls.output.bytes + call.output_at)[:call.output_size]
                offsets.append(len(output))
            starts.append(len(status))
        return {"calls": starts, "status": status, "gas_used": gas, "max_used_gas": most,
                "offsets": offsets, "output": bytes(output)}

    def logs(self) -> tuple[array[int], list[object]]:
        """Returns the index of each log's call, and the logs of all calls in order."""
        cdef const BundleRecord* bundle
        cdef size_t i, j, position = 0
        calls, found = array("Q"), []
        for i in range(<size_t>self.count):
            bundle = self.bundle(i)
            apart = self.apart.get(i)
            for j in range(bundle.call_count):
                if apart is not None:
                    logs = apart[j].logs
                elif record_at(&self.calls, bundle.first_call + j).log_count:
                    logs = self.outcome(bundle.first_call + j).logs
                else:
                    logs = ()
                calls.extend([position] * len(logs))
                found.extend(logs)
                position += 1
        return calls, found

    def balances(self) -> tuple[array[int], bytes, bytes]:
        """Returns changes of balances: indices of bundles, addresses (20 bytes each), and changes
        in wei (32 bytes each, two's complement, big-endian).
        """
        cdef const DeltaRecord* delta = <const DeltaRecord*>self.deltas.bytes
        cdef size_t i
        cdef uint8_t word[32]
        bundles, addresses, changes = array("Q"), bytearray(), bytearray()
        for i in range(self.deltas.size // sizeof(DeltaRecord)):
            word_store(word, &delta[i].delta)
            bundles.append(self.first + delta[i].bundle)
            addresses += delta[i].address.b[:20]
            changes += word[:32]
        return bundles, bytes(addresses), bytes(changes)

    cdef object outcome(self, size_t at):
        outcome = record_outcome(&self.calls, record_at(&self.calls, at))
        # A failed creation has no created address.
        if outcome.created is None or outcome.success:
            return outcome
        return replace(outcome, created=None)


def restore_results(first, count, faults, apart, buffers):
    """Returns Results from the arguments that ``Results.__reduce__`` returned."""
    cdef Results restored = Results.__new__(Results)
    restored.first, restored.count = first, count
    restored.faults, restored.apart = faults, apart
    bundles, calls, output, logs, log_data, deltas = buffers
    refill(&restored.bundles, bundles)
    refill(&restored.calls.calls, calls)
    refill(&restored.calls.output, output)
    refill(&restored.calls.logs, logs)
    refill(&restored.calls.log_data, log_data)
    refill(&restored.deltas, deltas)
    return restored


@cython.freelist(256)
cdef class BundleResult:
    """The result of a bundle. Its values are created on access."""

    def __init__(self) -> None:
        raise TypeError("results come from simulate_many")

    @property
    def index(self) -> int:
        """The index of the bundle among the payloads."""
        return self.results.first + <Py_ssize_t>self.at

    @property
    def error(self) -> Exception | None:
        """The exception that refused the bundle, or None. A failed call is not an error."""
        return self.results.faults.get(self.at)

    @property
    def reason(self) -> str | None:
        """Why the bundle failed: the text of ``error``, or of its first failed call; else None."""
        if self.error is not None:
            return str(self.error).removeprefix("err: ")
        if self.success:
            return None
        return next((str(call.error) for call in self.calls if not call.success), None)

    @property
    def success(self) -> bool:
        """Whether the bundle was accepted and every call succeeded."""
        return self.results.bundle(self.at).succeeded

    @property
    def gas_used(self) -> int:
        """The gas that all calls used together."""
        return self.results.bundle(self.at).gas_used

    @property
    def calls(self) -> tuple[CallOutcome, ...]:
        """The outcomes of all calls, block after block. If the bundle was refused, those of the
        calls before the error.
        """
        cdef BundleRecord* record = self.results.bundle(self.at)
        cdef size_t i
        apart = self.results.apart.get(self.at)
        if apart is not None:
            return apart
        return tuple([
            self.results.outcome(i)
            for i in range(record.first_call, record.first_call + record.call_count)
        ])

    @property
    def balance_changes(self) -> dict[bytes, int]:
        """The change in wei of each balance that the calls changed, by address. Empty unless the
        simulation ran with ``balances=True``.
        """
        cdef const DeltaRecord* delta = <const DeltaRecord*>self.results.deltas.bytes
        cdef size_t i, count = self.results.deltas.size // sizeof(DeltaRecord)
        found = {}
        for i in range(count):
            if delta[i].bundle == self.at:
                change = word_to_int(&delta[i].delta)
                found[delta[i].address.b[:20]] = change - MODULUS if change >= SIGN else change
        return found

    def __bool__(self) -> bool:
        return self.success

    def check(self) -> BundleResult:
        """Returns this result. Raises ``error`` if the bundle was refused, ExecutionFailed if a
        call failed."""
        if self.error is not None:
            raise self.error
        if not self.success:
            raise ExecutionFailed(str(self.reason), self)
        return self

    cdef tuple values(self):
        error = self.error
        refused = None if error is None else (type(error), str(error))
        return self.index, self.success, self.gas_used, self.calls, self.balance_changes, refused

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BundleResult):
            return NotImplemented
        return self.values() == (<BundleResult>other).values()

    def __hash__(self) -> int:
        return hash((self.index, self.success, self.gas_used, self.calls))

    def __reduce__(self) -> object:
        # A pickle contains `results` with all bundles, but only once for all pickled bundles.
        return bundle_result, (self.results, self.at)

    def __repr__(self) -> str:
        shown = "" if self.reason is None else f" error={self.reason!r}"
        return (
            f"<BundleResult {self.index}: success={self.success} gas_used={self.gas_used}{shown}>"
        )


def bundle_result(Results results not None, size_t at) -> BundleResult:
    """Restores a pickled result."""
    cdef BundleResult result = BundleResult.__new__(BundleResult)
    if at >= <size_t>results.count:
        raise ValueError(f"there is no bundle {at} in a chunk of {results.count}")
    result.results, result.at = results, at
    return result
