"""Reads bundles into one plan, so that many of them run without the GIL in one step."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.mem cimport PyMem_RawFree
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t
from libc.string cimport memset

from fastevm.core.interpreter.machine cimport BlockContext
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.simulation.plan cimport Plan, PlannedBlock, block_at, list_add
from fastevm.core.execution.block.block_context cimport fill_environment
from fastevm.core.spec.schedule cimport ForkSchedule
from fastevm.rpc_types.call_object cimport read_call

from collections.abc import Mapping

from fastevm.simulate.batch.drafts import draft_of
from fastevm.core.simulation.environment import environment_of, overridden
from fastevm.core.simulation.limits import MAX_CALLS_PER_BLOCK
from fastevm.core.simulation.values import (
    NO_BLOCK_OVERRIDES,
    BlockStateCalls,
    SimulatePayload,
    SimulationError,
)
from fastevm.rpc_types.overrides import block_overrides_from, state_overrides_from
from fastevm.core.primitives.located import READ_ERRORS
from fastevm.rpc_types.positions import located
from fastevm.rpc_types.simulate_request import ENTRY_MEMBERS, EXTENSIONS, PAYLOAD_MEMBERS
from fastevm.rpc_types.value_forms import refuse_unknown


cdef Bundle* bundle_at(Bundles bundles, size_t index) noexcept nogil:
    return &(<Bundle*>bundles.items.items)[index]


cdef inline object member(dict given, str name):
    """Returns the member of a dict, or None if the dict does not have it."""
    cdef PyObject* found = PyDict_GetItem(given, name)
    return None if found == NULL else <object>found


cdef class Bundles:
    """The plan of consecutive bundles.

    ``base``: the state on which every bundle runs, with the rules of the bundles' block as its
    schedule and the hashes of at most 256 blocks before that block. ``environment``: the block
    values that calls see.
    """

    def __cinit__(self, base: object, environment: object, ForkSchedule schedule not None) -> None:
        self.plan = Plan()
        self.base = base
        self.schedule = schedule
        memset(&self.common, 0, sizeof(BlockContext))
        fill_environment(&self.common, environment)
        self.ancestors = b"".join(base.ancestors)
        self.common.ancestors = <const Hash*>PyBytes_AS_STRING(self.ancestors)
        self.common.ancestor_count = <uint32_t>(PyBytes_GET_SIZE(self.ancestors) // 32)
        self.faults = {}

    def __dealloc__(self) -> None:
        PyMem_RawFree(self.items.items)
        PyMem_RawFree(self.contexts.items)

    cdef int clear(self) except -1:
        """Removes all bundles and keeps the memory."""
        self.plan.clear()
        self.items.count = self.contexts.count = 0
        if self.faults:
            self.faults = {}
        return 0

    cdef int add(self, object payload) except -1:
        """Reads a bundle. If it is invalid, keeps the exception for its result."""
        cdef size_t at = self.items.count
        cdef Bundle* bundle = <Bundle*>list_add(&self.items, sizeof(Bundle))
        if bundle == NULL:
            raise MemoryError
        bundle.block = self.plan.blocks.count
        self.plan.add_block()
        try:
            self.read(bundle, payload)
        except (SimulationError, ValueError, TypeError, OverflowError) as error:
            bundle.route = REFUSED
            self.faults[at] = error
        return 0

    cdef int read(self, Bundle* bundle, object payload) except -1:
        if isinstance(payload, Mapping):
            payload = payload if type(payload) is dict else dict(payload)
            blocks = member(payload, "blockStateCalls")
            if blocks is None or len(payload) != 1:
                self.read_members(bundle, payload)
        elif isinstance(payload, list | tuple):
            return self.read_calls(block_at(self.plan, bundle.block), payload)
        elif isinstance(payload, SimulatePayload):
            blocks = payload.blocks
            bundle.validation = payload.validation
            bundle.trace_transfers = payload.trace_transfers
            if payload.has_extras:
                bundle.route = RUN_AS_CHAIN
        else:
            raise ValueError(f"payload: expected an object, found {type(payload).__name__}")
        if not blocks:
            raise SimulationError("empty_input", "empty input")
        if not isinstance(blocks, list | tuple):
            raise ValueError(f"blockStateCalls: expected an array, found {type(blocks).__name__}")
        if len(blocks) != 1 or bundle.route == RUN_AS_CHAIN:
            bundle.route = RUN_AS_CHAIN
            return 0
        try:
            return self.read_block(bundle, blocks[0])
        except READ_ERRORS as error:
            raise located(error, "blockStateCalls[0]", "blockStateCalls") from None

    cdef int read_members(self, Bundle* bundle, dict payload) except -1:
        refuse_unknown(payload, PAYLOAD_MEMBERS, "payload")
        bundle.validation = bool(member(payload, "validation"))
        bundle.trace_transfers = bool(member(payload, "traceTransfers"))
        if any([member(payload, name) for name in EXTENSIONS]):
            bundle.route = RUN_AS_CHAIN
        return 0

    cdef int read_block(self, Bundle* bundle, object entry) except -1:
        if isinstance(entry, BlockStateCalls):
            calls = entry.calls
            states, block = entry.state_overrides, entry.block_overrides
        elif isinstance(entry, Mapping):
            entry = entry if type(entry) is dict else dict(entry)
            calls = member(entry, "calls")
            states, block = member(entry, "stateOverrides"), member(entry, "blockOverrides")
            if (calls is not None) + (states is not None) + (block is not None) != len(entry):
                refuse_unknown(entry, ENTRY_MEMBERS, "blockStateCalls")
        else:
            raise ValueError(
                f"blockStateCalls: expected an object, found {type(entry).__name__}"
            )
        if (block and block is not NO_BLOCK_OVERRIDES) or bundle.validation:
            self.read_context(bundle, block_overrides_from(block))
        if states and bundle.route == RUN_HERE:
            self.read_overrides(bundle, state_overrides_from(states))
        if calls is not None and bundle.route == RUN_HERE:
            self.read_calls(block_at(self.plan, bundle.block), calls)
        return 0

    cdef int read_context(self, Bundle* bundle, object overrides) except -1:
        """Reads the block overrides of a bundle into a separate context.

        If the block makes other system calls than the common block, the bundle runs as a chain.
        """
        cdef BlockContext* context
        if overrides == NO_BLOCK_OVERRIDES and not bundle.validation:
            return 0
        header = self.base.header
        differs = (
            overrides.time, overrides.beacon_root, overrides.withdrawals, overrides.difficulty
        ) != (None, None, None, None)
        if differs or overrides.number not in (None, header.number + 1):
            bundle.route = RUN_AS_CHAIN
            return 0
        overrides = overridden(self.base.next_block, overrides)
        draft = draft_of(
            header, self.schedule, self.common.timestamp, overrides,
            validation=bundle.validation,
        )
        environment = environment_of(
            draft, self.schedule, self.common.chain_id, overrides
        )
        bundle.context = self.contexts.count
        context = <BlockContext*>list_add(&self.contexts, sizeof(BlockContext))
        if context == NULL:
            raise MemoryError
        context[0] = self.common
        fill_environment(context, environment)
        bundle.has_context = True
        return 0

    cdef int read_calls(self, PlannedBlock* block, object calls) except -1:
        cdef Py_ssize_t count, at = 0
        if not isinstance(calls, list | tuple):
            raise ValueError(f"calls: expected an array, found {type(calls).__name__}")
        count = len(calls)
        if count > MAX_CALLS_PER_BLOCK:
            raise SimulationError(
                "too_many_calls", f"too many calls in block: {count} > {MAX_CALLS_PER_BLOCK}"
            )
        try:
            for call in calls:
                read_call(self.plan, call)
                at += 1
        except READ_ERRORS as error:
            raise located(error, f"calls[{at}]", "calls") from None
        block.call_count = count
        return 0

    cdef int read_overrides(self, Bundle* bundle, object overrides) except -1:
        contracts = self.schedule.system_contracts.values()
        if any([address in contracts for address in overrides]):
            bundle.route = RUN_AS_CHAIN
            return 0
        return self.plan.fill_overrides(block_at(self.plan, bundle.block), overrides)
