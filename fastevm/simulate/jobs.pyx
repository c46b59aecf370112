"""Reads bundles into plain C data, so that a chunk of them runs without the GIL in one step."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from fastevm.execution.outcome cimport TX_BLOCK_GAS, TX_OUT_OF_MEMORY, TX_VALID, TxError, TxResult
from fastevm.execution.transaction cimport Transaction
from fastevm.execution.tx cimport DYNAMIC_FEE_TX, LEGACY_TX, SENDER_KNOWN, Tx
from fastevm.interpreter.machine cimport BlockContext, PrecompileMove
from fastevm.precompiles.registry cimport precompile_at
from fastevm.primitives.arena cimport arena_alloc, arena_free, arena_new, arena_reset
from fastevm.primitives.hashes cimport Address, Hash, address_eq
from fastevm.wire.text.hex cimport hex_decode
from fastevm.primitives.word cimport word_copy, word_from_int, word_set
from fastevm.simulate.reading cimport digits_of, read_address, read_uint64, read_word
from fastevm.simulate.runner cimport fill_environment
from fastevm.spec.schedule cimport ForkSchedule
from fastevm.state.code cimport Code, code_new, code_release, code_retain
from fastevm.state.world cimport (
    Account,
    World,
    world_account,
    world_put_account,
    world_put_slot,
    world_reset_storage,
)

from fastevm.simulate.blocks import MAX_CALLS_PER_BLOCK, drafted
from fastevm.simulate.call import check_prices, transactions_of
from fastevm.simulate.environment import environment_of
from fastevm.simulate.overrides import apply_overrides
from fastevm.simulate.values import (
    AccountOverride,
    BlockOverrides,
    BlockStateCalls,
    CallRequest,
    SimulatePayload,
    SimulationError,
)
from fastevm.simulate.wire import EXTENSIONS, block_overrides_from, call_from, state_overrides_from


cdef enum:
    ARENA_CHUNK = 64 * 1024
    FIRST_ITEMS = 16


NO_OVERRIDES = BlockOverrides()
LISTS = ("accessList", "blobVersionedHashes", "authorizationList", "chainId")


cdef void* list_add(List* list, size_t item_size) noexcept nogil:
    cdef size_t capacity
    cdef void* items
    if list.count == list.capacity:
        capacity = list.capacity * 2 if list.capacity else FIRST_ITEMS
        items = PyMem_RawRealloc(list.items, capacity * item_size)
        if items == NULL:
            return NULL
        list.items = items
        list.capacity = capacity
    items = <uint8_t*>list.items + list.count * item_size
    memset(items, 0, item_size)
    list.count += 1
    return items


cdef void* list_next(List* list, size_t item_size) except NULL:
    cdef void* item = list_add(list, item_size)
    if item == NULL:
        raise MemoryError
    return item


cdef BundleJob* bundle_at(Jobs jobs, size_t index) noexcept nogil:
    return &(<BundleJob*>jobs.bundles.items)[index]


cdef CallJob* call_at(Jobs jobs, size_t index) noexcept nogil:
    return &(<CallJob*>jobs.calls.items)[index]


cdef TxError call_fill(
    World* w, CallJob* job, uint64_t left, uint64_t budget, bint* capped, TxResult* result
) noexcept nogil:
    cdef Account* sender
    cdef uint64_t gas = left if job.default_gas else job.tx.gas_limit
    job.tx.gas_limit = gas
    if gas > left:
        word_set(&result.have, left)
        word_set(&result.want, gas)
        return TX_BLOCK_GAS
    capped[0] = gas > budget
    if capped[0]:
        job.tx.gas_limit = budget
    if job.default_nonce:
        sender = world_account(w, &job.tx.sender)
        if sender == NULL:
            return TX_OUT_OF_MEMORY
        job.tx.nonce = sender.nonce
    return TX_VALID


cdef bint override_apply(World* w, const OverrideJob* job, const SlotJob* slots) noexcept nogil:
    cdef Account* a = world_account(w, &job.address)
    cdef Code* code
    cdef size_t i
    if a == NULL:
        return False
    if job.has_balance or job.has_nonce or job.has_code:
        code = job.code if job.has_code else a.code
        code_retain(code)
        if not world_put_account(
            w, a, &job.balance if job.has_balance else &a.balance,
            job.nonce if job.has_nonce else a.nonce, code,
        ):
            return False
    if job.resets and not world_reset_storage(w, a):
        return False
    if job.sets_slots:
        a.exists = True
    for i in range(job.first_slot, job.first_slot + job.slot_count):
        if not world_put_slot(w, a, &slots[i].key, &slots[i].value):
            return False
    return True


cdef bint overrides_apply(
    World* w, const OverrideJob* jobs, size_t count, const SlotJob* slots
) noexcept nogil:
    cdef size_t i
    for i in range(count):
        if not override_apply(w, &jobs[i], slots):
            return False
    return True


cdef inline object member(dict given, str name):
    """The member, or None."""
    cdef PyObject* found = PyDict_GetItem(given, name)
    return None if found == NULL else <object>found


cdef class Jobs:
    """The jobs of one chunk.

    ``base``: the view that every bundle stands on, under the rules of the block that it is, with
    the hashes of at most 256 blocks before that one. ``environment``: what its calls see.
    """

    def __cinit__(self, base: object, environment: object, ForkSchedule schedule not None) -> None:
        self.arena = arena_new(ARENA_CHUNK)
        if self.arena == NULL:
            raise MemoryError
        self.base = base
        self.schedule = schedule
        self.chain_id = base.config.chain_id
        self.legacy = not schedule.c.has_base_fee
        memset(&self.common, 0, sizeof(BlockContext))
        fill_environment(&self.common, environment)
        self.ancestors = b"".join(base.ancestors)
        self.common.ancestors = <const Hash*>PyBytes_AS_STRING(self.ancestors)
        self.common.ancestor_count = <uint32_t>(PyBytes_GET_SIZE(self.ancestors) // 32)
        self.kept = []
        self.faults = {}

    def __dealloc__(self) -> None:
        self.release_codes()
        PyMem_RawFree(self.bundles.items)
        PyMem_RawFree(self.calls.items)
        PyMem_RawFree(self.overrides.items)
        PyMem_RawFree(self.slots.items)
        PyMem_RawFree(self.moves.items)
        PyMem_RawFree(self.contexts.items)
        arena_free(self.arena)

    def release_codes(self) -> None:
        """Give back the codes of overrides."""
        cdef size_t i
        for i in range(self.overrides.count):
            code_release((<OverrideJob*>self.overrides.items)[i].code)
        self.overrides.count = 0

    cdef int clear(self) except -1:
        """Forget all jobs; the memory stays."""
        self.release_codes()
        self.bundles.count = self.calls.count = self.slots.count = 0
        self.moves.count = self.contexts.count = 0
        arena_reset(self.arena)
        if self.kept:
            self.kept.clear()
        if self.faults:
            self.faults = {}
        return 0

    # ------------------------------------------------------------------------------------------
    # bundles

    cdef int add(self, object payload) except -1:
        """Read one bundle; what is wrong with it is kept for its result."""
        cdef size_t at = self.bundles.count
        cdef BundleJob* bundle = <BundleJob*>list_next(&self.bundles, sizeof(BundleJob))
        bundle.first_call = self.calls.count
        bundle.first_override = self.overrides.count
        bundle.first_move = self.moves.count
        try:
            self.read(bundle, payload)
        except (SimulationError, ValueError, TypeError, OverflowError) as error:
            bundle.fate = REFUSED
            self.faults[at] = error
        bundle.call_count = self.calls.count - bundle.first_call
        bundle.override_count = self.overrides.count - bundle.first_override
        bundle.move_count = self.moves.count - bundle.first_move
        return 0

    cdef int read(self, BundleJob* bundle, object payload) except -1:
        if isinstance(payload, dict):
            blocks = member(payload, "blockStateCalls")
            if len(payload) != 1:
                self.read_flags(bundle, payload)
        elif isinstance(payload, SimulatePayload):
            blocks = payload.blocks
            bundle.validation = payload.validation
            bundle.trace_transfers = payload.trace_transfers
            if payload.has_extras:
                bundle.fate = RUN_APART
        elif isinstance(payload, list | tuple):
            return self.read_calls(bundle, payload)
        else:
            raise ValueError(f"a payload is an object, not {type(payload).__name__}")
        if not blocks:
            raise SimulationError("empty_input", "empty input")
        if not isinstance(blocks, list | tuple):
            raise ValueError("blockStateCalls: expected an array")
        if len(blocks) != 1 or bundle.fate == RUN_APART:
            bundle.fate = RUN_APART
            return 0
        return self.read_block(bundle, blocks[0])

    cdef int read_flags(self, BundleJob* bundle, dict payload) except -1:
        bundle.validation = bool(member(payload, "validation"))
        bundle.trace_transfers = bool(member(payload, "traceTransfers"))
        if any([member(payload, name) for name in EXTENSIONS]):
            bundle.fate = RUN_APART
        return 0

    cdef int read_block(self, BundleJob* bundle, object entry) except -1:
        if isinstance(entry, BlockStateCalls):
            calls = entry.calls
            states, block = entry.state_overrides, entry.block_overrides
        elif isinstance(entry, dict):
            calls = member(entry, "calls")
            states, block = member(entry, "stateOverrides"), member(entry, "blockOverrides")
        else:
            raise ValueError("blockStateCalls: expected objects")
        if block or bundle.validation:
            self.read_context(bundle, block_overrides_from(block))
        if states and bundle.fate == RUN_HERE:
            self.read_overrides(bundle, state_overrides_from(states))
        if calls and bundle.fate == RUN_HERE:
            self.read_calls(bundle, calls)
        return 0

    cdef int read_context(self, BundleJob* bundle, object overrides) except -1:
        """The bundle's own block; one that runs other system calls than the common one runs
        apart."""
        cdef BlockContext* context
        if overrides == NO_OVERRIDES and not bundle.validation:
            return 0
        header = self.base.header
        differs = (
            overrides.time, overrides.beacon_root, overrides.withdrawals, overrides.difficulty
        ) != (None, None, None, None)
        if differs or overrides.number not in (None, header.number + 1):
            bundle.fate = RUN_APART
            return 0
        draft = drafted(
            header, self.schedule, BlockOverrides(
                time=self.common.timestamp, fee_recipient=overrides.fee_recipient,
                gas_limit=overrides.gas_limit, prev_randao=overrides.prev_randao,
                base_fee_per_gas=overrides.base_fee_per_gas,
            ), merged=bool(self.schedule.c.proof_of_stake), validation=bundle.validation,
        )
        environment = environment_of(draft, self.schedule, self.chain_id, overrides)
        bundle.context = self.contexts.count
        context = <BlockContext*>list_next(&self.contexts, sizeof(BlockContext))
        context[0] = self.common
        fill_environment(context, environment)
        bundle.has_context = True
        return 0

    # ------------------------------------------------------------------------------------------
    # calls

    cdef int read_calls(self, BundleJob* bundle, object calls) except -1:
        if not isinstance(calls, list | tuple):
            raise ValueError("calls: expected an array")
        count = len(calls)
        if count > MAX_CALLS_PER_BLOCK:
            raise SimulationError(
                "too_many_calls", f"too many calls in block: {count} > {MAX_CALLS_PER_BLOCK}"
            )
        for call in calls:
            self.read_call(call)
        return 0

    cdef int read_call(self, object call) except -1:
        cdef CallJob* job = <CallJob*>list_next(&self.calls, sizeof(CallJob))
        job.default_gas = job.default_nonce = True
        job.tx.sender_state = SENDER_KNOWN
        job.tx.authorities_known = True
        if isinstance(call, dict):
            return self.read_json(job, call)
        if isinstance(call, CallRequest):
            return self.read_lists(job, call)
        if call is None:
            return self.read_lists(job, CallRequest())
        raise ValueError(f"calls: expected an object, found {type(call).__name__}")

    cdef int read_json(self, CallJob* job, dict call) except -1:
        cdef Tx* tx = &job.tx
        for name in LISTS:
            if member(call, name) is not None:
                return self.read_lists(job, call_from(call))
        given = member(call, "from")
        if given is not None:
            read_address(&tx.sender, given, "from")
        given = member(call, "to")
        tx.is_create = given is None
        if given is not None:
            read_address(&tx.to, given, "to")
        given = member(call, "gas")
        if given is not None:
            read_uint64(&tx.gas_limit, given, "gas")
            job.default_gas = False
        given = member(call, "value")
        if given is not None:
            read_word(&tx.value, given, "value")
        given = member(call, "nonce")
        if given is not None:
            read_uint64(&tx.nonce, given, "nonce")
            job.default_nonce = False
        given = member(call, "input")
        if given is None:
            given = member(call, "data")
        if given is not None:
            self.read_data(tx, given)
        return self.read_prices(
            job, member(call, "gasPrice"), member(call, "maxFeePerGas"),
            member(call, "maxPriorityFeePerGas"),
        )

    cdef int read_prices(self, CallJob* job, object price, object cap, object tip) except -1:
        cdef Tx* tx = &job.tx
        if price is not None:
            if cap is not None or tip is not None:
                check_prices(CallRequest(gas_price=0, max_fee_per_gas=0), self.chain_id)
            tx.tx_type = LEGACY_TX
            read_word(&tx.max_fee, price, "gasPrice")
            word_copy(&tx.max_priority_fee, &tx.max_fee)
            return 0
        tx.tx_type = LEGACY_TX if self.legacy else DYNAMIC_FEE_TX
        tx.has_chain_id = not self.legacy
        tx.chain_id = self.chain_id
        if cap is not None:
            read_word(&tx.max_fee, cap, "maxFeePerGas")
        if tip is not None:
            read_word(&tx.max_priority_fee, tip, "maxPriorityFeePerGas")
        return 0

    cdef int read_data(self, Tx* tx, object value) except -1:
        cdef size_t count = 0
        cdef const char* digits
        cdef uint8_t* room
        if isinstance(value, str):
            digits = digits_of(value, &count, "data")
            if count == 0:
                return 0
            room = <uint8_t*>arena_alloc(self.arena, count // 2)
            if room == NULL:
                raise MemoryError
            if count & 1 or not hex_decode(room, digits, count):
                raise ValueError("data: expected an even number of hex digits")
            tx.data = room
            tx.size = count // 2
            return 0
        if not isinstance(value, bytes):
            raise ValueError(f"data: expected bytes or hex text, found {type(value).__name__}")
        self.kept.append(value)
        tx.data = <const uint8_t*>PyBytes_AS_STRING(value)
        tx.size = PyBytes_GET_SIZE(value)
        return 0

    cdef int read_lists(self, CallJob* job, object request) except -1:
        """Any call, by way of a transaction."""
        cdef Transaction transaction
        check_prices(request, self.chain_id)
        transaction = transactions_of(request, request.gas or 0, 0, self.base)[0]
        self.kept.append(transaction)
        job.tx = transaction.c
        job.default_gas = request.gas is None
        job.default_nonce = request.nonce is None
        return 0

    # ------------------------------------------------------------------------------------------
    # overrides

    cdef int read_overrides(self, BundleJob* bundle, object overrides) except -1:
        contracts = self.schedule.system_contracts.values()
        if any(address in contracts for address in overrides):
            bundle.fate = RUN_APART
            return 0
        apply_overrides(self, overrides)
        return 0

    def is_precompile(self, address: bytes) -> bool:
        """Whether the fork has a precompile at the address."""
        cdef Address key
        read_address(&key, address, "stateOverrides")
        return precompile_at(&self.schedule.c, &key) != 0

    def move_precompile(self, source: bytes | None, address: bytes) -> None:
        """Let the precompile of ``source`` answer at ``address``, in the bundle read last."""
        cdef BundleJob* bundle = bundle_at(self, self.bundles.count - 1)
        cdef PrecompileMove* move
        cdef Address target, key
        cdef size_t i
        read_address(&target, address, "stateOverrides")
        for i in range(bundle.first_move, self.moves.count):
            move = &(<PrecompileMove*>self.moves.items)[i]
            if address_eq(&move.address, &target):
                break
        else:
            move = <PrecompileMove*>list_next(&self.moves, sizeof(PrecompileMove))
        move.address = target
        move.precompile = 0
        if source is not None:
            read_address(&key, source, "stateOverrides")
            move.precompile = precompile_at(&self.schedule.c, &key)

    def override_account(self, address: bytes, override: AccountOverride) -> None:
        """Note the override for the bundle read last."""
        cdef OverrideJob* job = <OverrideJob*>list_next(&self.overrides, sizeof(OverrideJob))
        cdef bytes code = override.code
        job.first_slot = self.slots.count
        read_address(&job.address, address, "stateOverrides")
        if override.balance is not None:
            word_from_int(&job.balance, override.balance)
            job.has_balance = True
        if override.nonce is not None:
            job.nonce = override.nonce
            job.has_nonce = True
        if code is not None:
            job.has_code = True
            job.code = code_new(
                <const uint8_t*>PyBytes_AS_STRING(code), PyBytes_GET_SIZE(code), NULL, False
            )
            if job.code == NULL:
                raise MemoryError
        job.resets = override.state is not None
        for slots in (override.state, override.state_diff):
            if slots:
                self.read_slots(slots)
        job.slot_count = self.slots.count - job.first_slot
        job.sets_slots = job.slot_count != 0

    def read_slots(self, slots: object) -> None:
        """Note slots for the override noted last."""
        cdef SlotJob* slot
        for key, value in slots.items():
            slot = <SlotJob*>list_next(&self.slots, sizeof(SlotJob))
            word_from_int(&slot.key, key)
            word_from_int(&slot.value, value)
