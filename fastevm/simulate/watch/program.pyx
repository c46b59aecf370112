"""Compiles a question (a call, bundle or payload) to one block of C values."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memset

from fastevm.core.primitives.word cimport word_is_zero
from fastevm.core.simulation.plan cimport PlannedBlock, PlannedCall, PlannedOverride, SlotValue
from fastevm.core.simulation.plan cimport block_at
from fastevm.core.state.code cimport code_release, code_retain
from fastevm.simulate.batch.bundles cimport RUN_AS_CHAIN, Bundle, Bundles

from fastevm.core.simulation.environment import environment_of
from fastevm.core.simulation.values import NO_BLOCK_OVERRIDES
from fastevm.core.state.layer import Layer
from fastevm.simulate.views import view_of


cdef class QuestionReader(Bundles):
    cdef int read_context(self, Bundle* bundle, object overrides) except -1:
        """Makes a question with block overrides run as a chain: overrides depend on the base."""
        if overrides != NO_BLOCK_OVERRIDES or bundle.validation:
            bundle.route = RUN_AS_CHAIN
        return 0

    cdef int read_overrides(self, Bundle* bundle, object overrides) except -1:
        if self.own:          # the block's system calls have run: overrides cannot change them
            return self.plan.fill_overrides(block_at(self.plan, bundle.block), overrides)
        return Bundles.read_overrides(self, bundle, overrides)


def question_reader() -> QuestionReader:
    """Returns a reader, whose base is a placeholder."""
    view = view_of(Layer.empty())
    environment = environment_of(view.header, view.schedule, 1, NO_BLOCK_OVERRIDES)
    return QuestionReader(view, environment, view.schedule)


cdef Program* program_of(QuestionReader reader) noexcept nogil:
    cdef const PlannedBlock* block = &(<const PlannedBlock*>reader.plan.blocks.items)[0]
    cdef const Bundle* bundle = &(<const Bundle*>reader.items.items)[0]
    cdef const PlannedCall* calls = <const PlannedCall*>reader.plan.calls.items
    cdef size_t calls_size = block.call_count * sizeof(PlannedCall)
    cdef size_t overrides_size = block.override_count * sizeof(PlannedOverride)
    cdef size_t slots_size = reader.plan.slots.count * sizeof(SlotValue)
    cdef size_t size = sizeof(Program) + calls_size + overrides_size + slots_size
    cdef Program* program
    cdef PlannedCall* call
    cdef uint8_t* at
    cdef size_t i
    for i in range(block.call_count):
        size += calls[i].tx.size
    program = <Program*>PyMem_RawMalloc(size)
    if program == NULL:
        return NULL
    memset(program, 0, sizeof(Program))
    program.size = size
    program.call_count = block.call_count
    program.override_count = block.override_count
    program.slot_count = reader.plan.slots.count
    program.trace_transfers = bundle.trace_transfers
    program.is_free = True
    at = <uint8_t*>program + sizeof(Program)
    program.calls = <PlannedCall*>at
    program.overrides = <PlannedOverride*>(at + calls_size)
    program.slots = <SlotValue*>(at + calls_size + overrides_size)
    at += calls_size + overrides_size + slots_size
    if calls_size:
        memcpy(program.calls, calls, calls_size)
    if overrides_size:
        memcpy(program.overrides, reader.plan.overrides.items, overrides_size)
    if slots_size:
        memcpy(program.slots, reader.plan.slots.items, slots_size)
    for i in range(program.override_count):
        code_retain(program.overrides[i].code)
    for i in range(program.call_count):
        call = &program.calls[i]
        if call.tx.size:
            memcpy(at, call.tx.data, call.tx.size)
        call.tx.data = at
        at += call.tx.size
        if not (word_is_zero(&call.tx.max_fee) and word_is_zero(&call.tx.max_priority_fee)):
            program.is_free = False
        if not word_is_zero(&call.tx.max_fee_per_blob_gas):
            program.pays_blobs = True
    return program


cdef void program_free(Program* program) noexcept nogil:
    cdef size_t i
    if program == NULL:
        return
    for i in range(program.override_count):
        code_release(program.overrides[i].code)
    PyMem_RawFree(program)
