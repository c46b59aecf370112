"""Changes of answers. A change refers to a packed answer and creates values on access."""

cimport cython
from cpython.mem cimport PyMem_RawFree
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memset

from fastevm.core.primitives.buffer cimport Buffer, buffer_append
from fastevm.core.primitives.intrinsics cimport atomic_decrement, atomic_increment
from fastevm.core.simulation.records cimport CallRecord
from fastevm.simulate.batch.results cimport BundleRecord, BundleResult, Results
from fastevm.simulate.watch.question cimport Answer, answer_bytes, answer_size

from fastevm.evm.contracts.codec import AbiDecodingError

NAMES = ("new", "status", "output", "gas", "logs", "balances", "error")


# ----------------------------------------------------------------------------------------------
# differences

cdef inline const uint8_t* part(const Answer* answer, int index) noexcept nogil:
    cdef const uint8_t* at = answer_bytes(answer)
    cdef int i
    for i in range(index):
        at += answer.sizes[i]
    return at


cdef inline bint same_part(const Answer* a, const Answer* b, int index) noexcept nogil:
    return a.sizes[index] == b.sizes[index] and (
        a.sizes[index] == 0 or memcmp(part(a, index), part(b, index), a.sizes[index]) == 0
    )


cdef uint32_t call_differences(const CallRecord* a, const CallRecord* b) noexcept nogil:
    cdef uint32_t marks = 0
    if (
        a.status != b.status or a.halt_opcode != b.halt_opcode or a.capped != b.capped
        or a.halt_height != b.halt_height or a.has_created != b.has_created
        or memcmp(a.created.b, b.created.b, 20) != 0
    ):
        marks |= STATUS
    if a.gas_used != b.gas_used or a.max_used_gas != b.max_used_gas:
        marks |= GAS
    if a.output_size != b.output_size:
        marks |= OUTPUT
    if a.log_count != b.log_count:
        marks |= LOGS
    return marks


cdef uint32_t differences(const Answer* before, const Answer* after) noexcept nogil:
    cdef const CallRecord* a
    cdef const CallRecord* b
    cdef uint32_t marks = 0
    cdef size_t i
    if before == NULL or after == NULL:
        return 0
    if before.sizes[1] != after.sizes[1]:
        marks |= STATUS
    else:
        a = <const CallRecord*>part(before, 1)
        b = <const CallRecord*>part(after, 1)
        for i in range(before.sizes[1] // sizeof(CallRecord)):
            marks |= call_differences(&a[i], &b[i])
    if (<const BundleRecord*>part(before, 0)).succeeded != (
        <const BundleRecord*>part(after, 0)
    ).succeeded:
        marks |= STATUS
    if not same_part(before, after, 2):
        marks |= OUTPUT
    if not (same_part(before, after, 3) and same_part(before, after, 4)):
        marks |= LOGS
    if not same_part(before, after, 5):
        marks |= BALANCES
    return marks


cdef uint32_t marks_of_outcomes(tuple before, tuple after):
    """Returns how the call outcomes of two simulated chains differ, as bits of Difference."""
    cdef uint32_t marks = 0
    if len(before) != len(after):
        return STATUS
    for old, new in zip(before, after):
        if (old.success, old.reverted, old.error, old.created) != (
            new.success, new.reverted, new.error, new.created
        ):
            marks |= STATUS
        if (old.gas_used, old.max_used_gas) != (new.gas_used, new.max_used_gas):
            marks |= GAS
        if old.output != new.output:
            marks |= OUTPUT
        if old.logs != new.logs:
            marks |= LOGS
        if old.extras != new.extras:
            marks |= BALANCES
    return marks


# ----------------------------------------------------------------------------------------------
# values

cdef int fill(Buffer* buffer, const uint8_t* data, size_t size) except -1:
    if size and not buffer_append(buffer, data, size):
        raise MemoryError
    return 0


cdef Results unpacked(const Answer* answer, object error):
    """Returns the answer as Results with one bundle."""
    cdef Results results = Results.__new__(Results)
    cdef BundleRecord nothing
    results.first, results.count = 0, 1
    if error is not None:
        results.faults[0] = error
    if answer == NULL:
        memset(&nothing, 0, sizeof(BundleRecord))
        fill(&results.bundles, <const uint8_t*>&nothing, sizeof(BundleRecord))
        return results
    fill(&results.bundles, part(answer, 0), answer.sizes[0])
    fill(&results.calls.calls, part(answer, 1), answer.sizes[1])
    fill(&results.calls.output, part(answer, 2), answer.sizes[2])
    fill(&results.calls.logs, part(answer, 3), answer.sizes[3])
    fill(&results.calls.log_data, part(answer, 4), answer.sizes[4])
    fill(&results.deltas, part(answer, 5), answer.sizes[5])
    return results


cdef BundleResult result_of(Results results):
    cdef BundleResult result = BundleResult.__new__(BundleResult)
    result.results = results
    result.at = 0
    return result


@cython.freelist(256)
cdef class Change:
    """The current answer to a question of a `Watch`, and how it differs from the previous answer.

    A question is a call or bundle that a watch runs again when the state changes. ``id``,
    ``priority``: the id and priority of the question. ``base``: the base on which the answer is
    valid; None if there is no answer. ``stale``: whether the answer may be outdated: the base
    changed a value that the question reads, and the question has not run since. ``answer``: a
    result of the form that `fastevm.simulate.simulate_many` yields; None if the question never ran.
    ``differs``: "new" (the first answer), "status", "output", "gas", "logs", "balances", "error";
    empty if only ``stale`` changed. ``skipped``: how many earlier changes of this question a stream
    replaced by this change. ``value``: the decoded outputs of a `View`; None if the call failed or
    its output cannot be decoded, like that of an address without code.
    """

    def __init__(self) -> None:
        raise TypeError("changes come from a Watch")

    def __dealloc__(self) -> None:
        if self.packed != NULL and atomic_decrement(&self.packed.references) == 0:
            PyMem_RawFree(self.packed)

    @property
    def answer(self) -> BundleResult | None:
        """Returns the answer; None if the question never ran."""
        if self.results is None and (self.packed != NULL or self.error is not None):
            self.results = unpacked(self.packed, self.error)
        return None if self.results is None else result_of(self.results)

    @property
    def size(self) -> int:
        """Returns the size of the packed answer in bytes; 0 without one, as for a simulated chain.
        """
        return <object>answer_size(self.packed) if self.packed != NULL else 0

    @property
    def gas_used(self) -> int:
        """Returns the gas of the answer, without unpacking it; 0 if the question never ran."""
        if self.packed != NULL:
            return (<const BundleRecord*>part(self.packed, 0)).gas_used
        answer = self.answer
        return 0 if answer is None else answer.gas_used

    @property
    def differs(self) -> frozenset[str]:
        """Returns how the answer differs from the previous answer."""
        return frozenset([name for at, name in enumerate(NAMES) if self.marks >> at & 1])

    @property
    def value(self) -> object:
        """Returns the decoded outputs of a `View`.

        None if it is no `View`, or the call failed or returned something else, as an address
        without code does.
        """
        answer = self.answer
        if self.view is None or answer is None or not answer.success:
            return None
        calls = answer.calls
        try:
            return self.view.decode(calls[len(calls) - 1].output)
        except AbiDecodingError:
            return None

    def after(self, Change earlier not None) -> Change:
        """Returns a change that replaces this change and an earlier, unread one."""
        cdef Change joined = change_of(
            self.id, self.priority, self.base, self.stale, self.marks | earlier.marks,
            self.packed, self.results, self.error, self.view,
        )
        joined.skipped = earlier.skipped + 1
        return joined

    def __repr__(self) -> str:
        news = ", ".join(sorted(self.differs)) or "nothing"
        stale = " stale" if self.stale else ""
        return f"<Change of {self.id}{stale}: {news}; {self.answer!r}>"


cdef Change change_of(
    uint64_t id, int64_t priority, object base, bint stale, uint32_t marks, Answer* packed,
    Results results, object error, object view
):
    cdef Change change = Change.__new__(Change)
    change.id, change.base, change.stale, change.marks = id, base, stale, marks
    change.priority = priority
    change.results, change.error, change.view = results, error, view
    if packed != NULL:
        atomic_increment(&packed.references)
        change.packed = packed
    return change
