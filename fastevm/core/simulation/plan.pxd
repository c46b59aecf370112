# The input of a simulation as C values: blocks, their overrides and their calls.
from libc.stdint cimport uint64_t

from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.primitives.arena cimport Arena
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.word cimport Word
from fastevm.core.simulation.refusals cimport Refusal
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.code cimport Code
from fastevm.core.state.world cimport World


# A growing array of items of one type.
cdef struct List:
    void* items
    size_t count
    size_t capacity


cdef struct SlotValue:
    Word key
    Word value


cdef struct PlannedOverride:
    Address address
    bint has_balance
    bint has_nonce
    bint has_code
    bint has_state            # the slots replace the whole storage
    bint has_state_diff       # the slots replace only themselves
    bint moves_precompile
    Word balance
    uint64_t nonce
    Code* code                # a reference owned by the plan; NULL if there is no code
    Address move_to
    size_t first_slot
    size_t slot_count


# A call. Missing members (nonce, gas, chain id, transaction type) get defaults when the call runs.
cdef struct PlannedCall:
    Tx tx                     # its arrays are borrowed from a transaction that the plan keeps
    bint default_nonce
    bint default_gas
    bint has_gas_price        # `tx.max_fee` and `tx.max_priority_fee` both equal the price
    bint has_fee_caps
    bint has_access_list      # may be empty
    bint has_blob_hashes
    bint has_authorizations
    bint names_chain          # the call has a chain id
    bint is_faulty            # no transaction can represent the call: see `Plan.faults`
    Word chain_id


# An entry of blockStateCalls. Members that are not overridden follow the rules of simulated chains.
cdef struct PlannedBlock:
    bint has_number
    bint has_time
    bint has_gas_limit
    bint has_fee_recipient
    bint has_base_fee
    bint has_blob_base_fee
    bint has_difficulty
    uint64_t number           # UINT64_MAX for larger numbers
    uint64_t time
    uint64_t gas_limit
    Address fee_recipient
    Hash prev_randao          # zero unless overridden
    Hash beacon_root          # zero unless overridden
    Word base_fee
    Word blob_base_fee
    Word difficulty
    size_t first_call
    size_t call_count
    size_t first_override     # sorted by address
    size_t override_count
    size_t first_withdrawal
    size_t withdrawal_count
    Hash withdrawals_root
    uint64_t withdrawals_size  # bytes of the withdrawals' RLP without the list header


cdef class Plan:
    """The input of a simulation. It is filled once and then constant: threads may share it."""
    cdef List blocks              # PlannedBlock
    cdef List calls               # PlannedCall
    cdef List overrides           # PlannedOverride
    cdef List slots               # SlotValue
    cdef List withdrawals         # Credit
    cdef Arena* arena             # decoded call data
    cdef list kept                # objects that own memory which the calls borrow
    cdef dict faults              # index of a call -> the exception that refuses it
    cdef dict withdrawal_values   # index of a block -> its withdrawals
    cdef public bint validation
    cdef public bint trace_transfers
    cdef public bint full_transactions
    cdef public bint state_diff
    cdef public bint asset_changes
    cdef public bint access_list
    cdef public bint call_tree

    cdef int clear(self) except -1
    # Append an item. Raises MemoryError.
    cdef PlannedBlock* add_block(self) except NULL
    cdef PlannedCall* add_call(self) except NULL
    # Read values of fastevm.core.simulation.values.
    cdef int fill(self, object payload) except -1
    cdef int fill_block(self, PlannedBlock* block, object entry) except -1
    cdef int fill_environment(self, PlannedBlock* block, object overrides) except -1
    cdef int fill_withdrawals(self, PlannedBlock* block, tuple withdrawals) except -1
    cdef int fill_call(self, PlannedCall* call, object request) except -1
    cdef int fill_lists(self, PlannedCall* call, size_t at, object request) except -1
    cdef int fill_overrides(self, PlannedBlock* block, object overrides) except -1
    cdef int fill_override(self, PlannedOverride* item, object override) except -1
    cdef int fill_slots(self, PlannedOverride* item, object slots) except -1


# Append a zeroed item. Returns NULL if memory is exhausted.
cdef void* list_add(List* list, size_t item_size) noexcept nogil
# Append a call with its defaults, without the GIL. Returns NULL if memory is exhausted.
cdef PlannedCall* plan_add_call(Plan plan) noexcept nogil
# Sort the overrides of a block by address.
cdef void plan_sort_overrides(Plan plan, const PlannedBlock* block) noexcept nogil

cdef PlannedBlock* block_at(Plan plan, size_t index) noexcept nogil
cdef PlannedCall* call_at(Plan plan, size_t index) noexcept nogil

# Check a call for contradictions in its fees or chain id. Returns False with the reason in
# `refusal`.
cdef bint call_check(
    const PlannedCall* call, uint64_t chain_id, Refusal* refusal
) noexcept nogil
# Convert a call into a transaction under the fork's rules, except for gas and nonce.
cdef void call_transaction(
    Tx* tx, const PlannedCall* call, const Schedule* s, uint64_t chain_id
) noexcept nogil
# Convert an executed call into the transaction that the block contains. A call with a gas price
# becomes a legacy transaction without lists.
cdef void shown_transaction(Tx* tx) noexcept nogil
# Determine the gas limit and the nonce of a call. `left`: gas left in the block; `budget`: gas left
# for the request; `capped`: whether the budget reduced the gas limit. Returns False if memory is
# exhausted.
cdef bint call_defaults(
    World* w, Tx* tx, const PlannedCall* call, uint64_t left, uint64_t budget, bint* capped
) noexcept nogil
