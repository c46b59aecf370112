"""Plans: the input of a simulation as C values, read from the library's Python values."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from libc.stdint cimport UINT64_MAX, uint8_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcmp, memcpy, memset

from fastevm.core.execution.transaction.transaction cimport Transaction
from fastevm.core.execution.transaction.transaction_data cimport (
    ACCESS_LIST_TX,
    BLOB_TX,
    DYNAMIC_FEE_TX,
    LEGACY_TX,
    SENDER_KNOWN,
    SET_CODE_TX,
    Tx,
)
from fastevm.core.primitives.bytes_like cimport bytes_like, sized_bytes
from fastevm.core.primitives.arena cimport arena_free, arena_new, arena_reset
from fastevm.core.primitives.word cimport (
    Word,
    word_copy,
    word_eq,
    word_from_int,
    word_is_zero,
    word_set,
    word_zero, word_to_int,
)
from fastevm.core.simulation.refusals cimport (
    OTHER_CHAIN,
    TWO_KINDS_OF_FEES,
    Refusal,
    exception_of,
    refuse,
)
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.code cimport code_new, code_release
from fastevm.core.execution.block.block_executor cimport Credit
from fastevm.core.state.world cimport Account, World, world_account

from fastevm.core.execution.pow.rewards import WEI_PER_GWEI
from fastevm.core.execution.block.roots import ordered_root
from fastevm.core.execution.transaction.senders import recover_senders
from fastevm.core.execution.transaction.transaction import Transaction as TransactionValue
from fastevm.errors import FastevmError
from fastevm.core.simulation.values import CallRequest, SimulatePayload, StateOverrides
from fastevm.core.state.source import call_object


cdef enum:
    ARENA_CHUNK = 64 * 1024
    FIRST_ITEMS = 16


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


cdef PlannedCall* plan_add_call(Plan plan) noexcept nogil:
    cdef PlannedCall* call = <PlannedCall*>list_add(&plan.calls, sizeof(PlannedCall))
    if call != NULL:
        call.default_gas = call.default_nonce = True
        call.tx.is_create = True
        call.tx.sender_state = SENDER_KNOWN
        call.tx.authorities_known = True
    return call


cdef int by_address(const void* a, const void* b) noexcept nogil:
    return memcmp((<const PlannedOverride*>a).address.b, (<const PlannedOverride*>b).address.b, 20)


cdef void plan_sort_overrides(Plan plan, const PlannedBlock* block) noexcept nogil:
    if block.override_count > 1:
        qsort(
            &(<PlannedOverride*>plan.overrides.items)[block.first_override],
            block.override_count, sizeof(PlannedOverride), by_address,
        )


cdef PlannedBlock* block_at(Plan plan, size_t index) noexcept nogil:
    return &(<PlannedBlock*>plan.blocks.items)[index]


cdef PlannedCall* call_at(Plan plan, size_t index) noexcept nogil:
    return &(<PlannedCall*>plan.calls.items)[index]


cdef bint call_check(
    const PlannedCall* call, uint64_t chain_id, Refusal* refusal
) noexcept nogil:
    cdef Word own
    if call.has_gas_price and call.has_fee_caps:
        refuse(refusal, TWO_KINDS_OF_FEES, 0, 0)
        return False
    word_set(&own, chain_id)
    if call.names_chain and not word_eq(&call.chain_id, &own):
        refuse(refusal, OTHER_CHAIN, 0, chain_id)
        word_copy(&refusal.have, &call.chain_id)
        return False
    return True


cdef void call_transaction(
    Tx* tx, const PlannedCall* call, const Schedule* s, uint64_t chain_id
) noexcept nogil:
    cdef bint legacy = call.has_gas_price or not s.has_base_fee
    tx[0] = call.tx
    if not call.has_gas_price and not s.has_base_fee:
        word_zero(&tx.max_fee)
        word_zero(&tx.max_priority_fee)
    if call.has_authorizations:
        tx.tx_type = SET_CODE_TX
    elif call.has_blob_hashes:
        tx.tx_type = BLOB_TX
    elif not legacy:
        tx.tx_type = DYNAMIC_FEE_TX
    else:
        tx.tx_type = ACCESS_LIST_TX if call.has_access_list else LEGACY_TX
    tx.has_chain_id = tx.tx_type != LEGACY_TX
    tx.chain_id = chain_id


cdef void shown_transaction(Tx* tx) noexcept nogil:
    tx.tx_type = LEGACY_TX
    tx.has_chain_id = False
    tx.access_count = tx.access_slot_count = tx.blob_count = tx.authorization_count = 0


cdef bint call_defaults(
    World* w, Tx* tx, const PlannedCall* call, uint64_t left, uint64_t budget, bint* capped
) noexcept nogil:
    cdef Account* sender
    cdef uint64_t gas = left if call.default_gas else call.tx.gas_limit
    capped[0] = gas > budget
    tx.gas_limit = budget if capped[0] else gas
    if call.default_nonce:
        sender = world_account(w, &tx.sender)
        if sender == NULL:
            return False
        tx.nonce = sender.nonce
    return True


cdef int put_bytes(uint8_t* out, object value, Py_ssize_t size, str name) except -1:
    cdef bytes raw = sized_bytes(value, size, name)
    memcpy(out, PyBytes_AS_STRING(raw), size)
    return 0


ASKED_AHEAD = 16  # calls per plan for which a remote state prefetches values


cdef class Plan:
    """The input of a simulation.

    A plan is filled once; then several threads may run it concurrently.
    """

    def __cinit__(self) -> None:
        self.arena = arena_new(ARENA_CHUNK)
        if self.arena == NULL:
            raise MemoryError
        self.kept = []
        self.faults = {}
        self.withdrawal_values = {}

    def __dealloc__(self) -> None:
        self.release_codes()
        PyMem_RawFree(self.blocks.items)
        PyMem_RawFree(self.calls.items)
        PyMem_RawFree(self.overrides.items)
        PyMem_RawFree(self.slots.items)
        PyMem_RawFree(self.withdrawals.items)
        arena_free(self.arena)

    @staticmethod
    def of(payload: SimulatePayload) -> Plan:
        """Returns the plan of a payload. Raises ValueError or OverflowError for values out of
        range.
        """
        cdef Plan plan = Plan.__new__(Plan)
        plan.fill(payload)
        return plan

    @staticmethod
    def of_call(request: CallRequest, overrides: StateOverrides) -> Plan:
        """Returns the plan of one block with account overrides and one call."""
        cdef Plan plan = Plan.__new__(Plan)
        cdef PlannedBlock* block = plan.add_block()
        plan.fill_overrides(block, overrides)
        plan.fill_call(plan.add_call(), request)
        block.call_count = 1
        return plan

    @property
    def has_extras(self) -> bool:
        """Returns whether results beyond the eth_simulateV1 standard are requested."""
        return self.state_diff or self.asset_changes or self.access_list or self.call_tree

    @property
    def is_empty(self) -> bool:
        """Returns whether there is no block."""
        return self.blocks.count == 0

    @property
    def has_overrides(self) -> bool:
        """Returns whether any account is overridden."""
        return self.overrides.count != 0

    @property
    def has_fee_caps(self) -> bool:
        """Returns whether the first call has a fee cap or a priority fee."""
        return self.calls.count != 0 and call_at(self, 0).has_fee_caps

    @property
    def is_free(self) -> bool:
        """Returns whether the first call offers no gas price."""
        cdef const PlannedCall* call
        if self.calls.count == 0:
            return True
        call = call_at(self, 0)
        return word_is_zero(&call.tx.max_fee) and word_is_zero(&call.tx.max_priority_fee)

    def call_gas(self, gas_cap: int, gas_limit: int) -> int:
        """Returns the gas of the first call: the call's own, or else ``gas_cap``, or ``gas_limit``
        (of the block) if the cap is 0.
        """
        cdef const PlannedCall* call
        if self.calls.count == 0:
            raise IndexError("the plan has no calls")
        call = call_at(self, 0)
        gas = (gas_cap or gas_limit) if call.default_gas else call.tx.gas_limit
        return min(gas, gas_cap) if gas_cap else gas

    def check_call(self, chain_id: int) -> None:
        """Raises SimulationError if the fees or the chain id of the first call contradict each
        other.

        Raises IndexError if there are no calls.
        """
        cdef Refusal refusal
        memset(&refusal, 0, sizeof(refusal))
        if self.calls.count == 0:
            raise IndexError("the plan has no calls")
        if not call_check(call_at(self, 0), chain_id, &refusal):
            raise exception_of(&refusal, self.faults)

    def call_objects(self) -> list[dict[str, str]]:
        """Returns the first calls as JSON objects, for which a remote state prefetches values."""
        cdef const PlannedCall* call
        cdef size_t i
        cdef list found = []
        for i in range(min(self.calls.count, ASKED_AHEAD)):
            call = call_at(self, i)
            found.append(call_object(
                call.tx.sender.b[:20],
                None if call.tx.is_create else call.tx.to.b[:20],
                call.tx.data[:call.tx.size] if call.tx.size else b"",
                word_to_int(&call.tx.value),
            ))
        return found

    def release_codes(self) -> None:
        """Releases the codes of overrides."""
        cdef size_t i
        for i in range(self.overrides.count):
            code_release((<PlannedOverride*>self.overrides.items)[i].code)
        self.overrides.count = 0

    cdef int clear(self) except -1:
        """Clears the plan but keeps its memory."""
        self.release_codes()
        self.blocks.count = self.calls.count = self.slots.count = self.withdrawals.count = 0
        arena_reset(self.arena)
        if self.kept:
            self.kept.clear()
        if self.faults:
            self.faults.clear()
        if self.withdrawal_values:
            self.withdrawal_values.clear()
        return 0

    cdef PlannedBlock* add_block(self) except NULL:
        cdef PlannedBlock* block = <PlannedBlock*>list_add(&self.blocks, sizeof(PlannedBlock))
        if block == NULL:
            raise MemoryError
        block.first_call = self.calls.count
        block.first_override = self.overrides.count
        block.first_withdrawal = self.withdrawals.count
        return block

    cdef PlannedCall* add_call(self) except NULL:
        cdef PlannedCall* call = plan_add_call(self)
        if call == NULL:
            raise MemoryError
        return call

    # ------------------------------------------------------------------------------------------
    # blocks

    cdef int fill(self, object payload) except -1:
        self.validation = payload.validation
        self.trace_transfers = payload.trace_transfers
        self.full_transactions = payload.full_transactions
        self.state_diff = payload.state_diff
        self.asset_changes = payload.asset_changes
        self.access_list = payload.access_list
        self.call_tree = payload.call_tree
        for entry in payload.blocks:
            self.fill_block(self.add_block(), entry)
        return 0

    cdef int fill_block(self, PlannedBlock* block, object entry) except -1:
        """Reads the calls, overrides and environment of a block."""
        self.fill_environment(block, entry.block_overrides)
        self.fill_overrides(block, entry.state_overrides)
        for request in entry.calls:
            self.fill_call(self.add_call(), request)
        block.call_count = self.calls.count - block.first_call
        return 0

    cdef int fill_environment(self, PlannedBlock* block, object overrides) except -1:
        if overrides.number is not None:
            block.has_number = True
            block.number = min(overrides.number, UINT64_MAX)
        if overrides.time is not None:
            block.has_time = True
            block.time = overrides.time
        if overrides.gas_limit is not None:
            block.has_gas_limit = True
            block.gas_limit = overrides.gas_limit
        if overrides.fee_recipient is not None:
            block.has_fee_recipient = True
            put_bytes(block.fee_recipient.b, overrides.fee_recipient, 20, "feeRecipient")
        if overrides.prev_randao is not None:
            put_bytes(block.prev_randao.b, overrides.prev_randao, 32, "prevRandao")
        if overrides.beacon_root is not None:
            put_bytes(block.beacon_root.b, overrides.beacon_root, 32, "beaconRoot")
        if overrides.base_fee_per_gas is not None:
            block.has_base_fee = True
            word_from_int(&block.base_fee, overrides.base_fee_per_gas)
        if overrides.blob_base_fee is not None:
            block.has_blob_base_fee = True
            word_from_int(&block.blob_base_fee, overrides.blob_base_fee)
        if overrides.difficulty is not None:
            block.has_difficulty = True
            word_from_int(&block.difficulty, overrides.difficulty)
        if overrides.withdrawals:
            self.fill_withdrawals(block, tuple(overrides.withdrawals))
        return 0

    cdef int fill_withdrawals(self, PlannedBlock* block, tuple withdrawals) except -1:
        """Reads withdrawals and computes their root and encoded size (EIP-4895)."""
        cdef Credit* item
        cdef bytes root
        encoded = [withdrawal.rlp() for withdrawal in withdrawals]
        root = ordered_root(encoded)
        for withdrawal in withdrawals:
            item = <Credit*>list_add(&self.withdrawals, sizeof(Credit))
            if item == NULL:
                raise MemoryError
            put_bytes(item.address.b, withdrawal.address, 20, "withdrawals.address")
            word_from_int(&item.amount, withdrawal.amount * WEI_PER_GWEI)
        block.withdrawal_count = len(withdrawals)
        block.withdrawals_size = sum([len(one) for one in encoded])
        memcpy(block.withdrawals_root.b, PyBytes_AS_STRING(root), 32)
        self.withdrawal_values[self.blocks.count - 1] = withdrawals
        return 0

    # ------------------------------------------------------------------------------------------
    # calls

    cdef int fill_call(self, PlannedCall* call, object request) except -1:
        cdef Tx* tx = &call.tx
        cdef size_t at = self.calls.count - 1
        cdef bytes data = bytes_like(request.data, "data")
        put_bytes(tx.sender.b, request.sender, 20, "from")
        if request.to is not None:
            tx.is_create = False
            put_bytes(tx.to.b, request.to, 20, "to")
        if request.gas is not None:
            call.default_gas = False
            tx.gas_limit = request.gas
        if request.nonce is not None:
            call.default_nonce = False
            tx.nonce = request.nonce
        word_from_int(&tx.value, request.value)
        if data:
            self.kept.append(data)
            tx.data = <const uint8_t*>PyBytes_AS_STRING(data)
            tx.size = <size_t>PyBytes_GET_SIZE(data)
        if request.gas_price is not None:
            call.has_gas_price = True
            word_from_int(&tx.max_fee, request.gas_price)
            word_copy(&tx.max_priority_fee, &tx.max_fee)
        if request.max_fee_per_gas is not None or request.max_priority_fee_per_gas is not None:
            call.has_fee_caps = True
            word_from_int(&tx.max_fee, request.max_fee_per_gas or 0)
            word_from_int(&tx.max_priority_fee, request.max_priority_fee_per_gas or 0)
        if request.chain_id is not None:
            call.names_chain = True
            word_from_int(&call.chain_id, request.chain_id)
        call.has_access_list = request.access_list is not None
        call.has_authorizations = request.authorization_list is not None
        call.has_blob_hashes = request.blob_versioned_hashes is not None
        if call.has_access_list or call.has_authorizations or call.has_blob_hashes:
            self.fill_lists(call, at, request)
        return 0

    cdef int fill_lists(self, PlannedCall* call, size_t at, object request) except -1:
        """Reads access list, blob hashes and authorizations of a call into a transaction, which
        the plan keeps.
        """
        cdef Transaction built
        cdef Tx* tx = &call.tx
        try:
            built = TransactionValue.build(
                to=request.to, max_fee_per_gas=0, **lists_of(request),
            )
        except FastevmError as error:
            call.is_faulty = True
            self.faults[at] = error
            return 0
        if request.authorization_list is not None:
            recover_senders([built], threads=1)
        self.kept.append(built)
        tx.access, tx.access_count = built.c.access, built.c.access_count
        tx.access_slots, tx.access_slot_count = built.c.access_slots, built.c.access_slot_count
        tx.blob_hashes, tx.blob_count = built.c.blob_hashes, built.c.blob_count
        tx.authorizations = built.c.authorizations
        tx.authorization_count = built.c.authorization_count
        tx.max_fee_per_blob_gas = built.c.max_fee_per_blob_gas
        return 0

    # ------------------------------------------------------------------------------------------
    # overrides of accounts

    cdef int fill_overrides(self, PlannedBlock* block, object overrides) except -1:
        cdef PlannedOverride* item
        for address in sorted(overrides):
            item = <PlannedOverride*>list_add(&self.overrides, sizeof(PlannedOverride))
            if item == NULL:
                raise MemoryError
            put_bytes(item.address.b, address, 20, "stateOverrides")
            self.fill_override(item, overrides[address])
        block.override_count = self.overrides.count - block.first_override
        return 0

    cdef int fill_override(self, PlannedOverride* item, object override) except -1:
        cdef bytes code = override.code
        item.first_slot = self.slots.count
        if override.balance is not None:
            item.has_balance = True
            word_from_int(&item.balance, override.balance)
        if override.nonce is not None:
            item.has_nonce = True
            item.nonce = override.nonce
        if code is not None:
            item.has_code = True
            item.code = code_new(
                <const uint8_t*>PyBytes_AS_STRING(code), PyBytes_GET_SIZE(code), NULL, False
            )
            if item.code == NULL:
                raise MemoryError
        if override.move_precompile_to is not None:
            item.moves_precompile = True
            put_bytes(item.move_to.b, override.move_precompile_to, 20, "movePrecompileToAddress")
        if override.state is not None:
            item.has_state = True
            self.fill_slots(item, override.state)
        if override.state_diff is not None:
            item.has_state_diff = True
            self.fill_slots(item, override.state_diff)
        return 0

    cdef int fill_slots(self, PlannedOverride* item, object slots) except -1:
        cdef SlotValue* slot
        for key, value in slots.items():
            slot = <SlotValue*>list_add(&self.slots, sizeof(SlotValue))
            if slot == NULL:
                raise MemoryError
            word_from_int(&slot.key, key)
            word_from_int(&slot.value, value)
        item.slot_count = self.slots.count - item.first_slot
        return 0


def lists_of(request: CallRequest) -> dict[str, object]:
    """Returns the lists of a call (access list, blobs, authorizations) for `Transaction.build`.
    """
    lists = {}
    if request.access_list is not None:
        lists["access_list"] = request.access_list
    if request.authorization_list is not None:
        lists["authorization_list"] = [
            (a.chain_id, a.address, a.nonce, a.y_parity, a.r, a.s)
            for a in request.authorization_list
        ]
    elif request.blob_versioned_hashes is not None:
        lists["blob_versioned_hashes"] = request.blob_versioned_hashes
        lists["max_fee_per_blob_gas"] = request.max_fee_per_blob_gas or 0
    return lists
