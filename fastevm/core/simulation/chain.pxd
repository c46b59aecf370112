# A simulated chain: blocks of calls, each on the state that the one before left.
from libc.stdint cimport uint32_t, uint64_t

from fastevm.core.execution.block.block_executor cimport BlockExecutor
from fastevm.core.execution.block.header cimport HeaderFields
from fastevm.core.execution.block.system_calls cimport SystemOutcome
from fastevm.core.execution.block.system_operations cimport QUEUE_COUNT, SystemContracts
from fastevm.core.execution.transaction.transaction_result cimport TxError, TxOptions, TxResult
from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.word cimport Word
from fastevm.core.simulation.body cimport Body
from fastevm.core.simulation.deadline cimport Deadline
from fastevm.core.simulation.overrides cimport PrecompileMoves
from fastevm.core.simulation.plan cimport List, Plan, PlannedBlock, PlannedCall
from fastevm.core.simulation.records cimport Records
from fastevm.core.simulation.refusals cimport Refusal
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.layer cimport Layer


# Why the run has stopped. What it needs comes from Python, and then it goes on.
cdef enum Halt:
    CHAIN_DONE = 0
    CHAIN_NEEDS_FEES = 1       # of the next block, by long arithmetic from its parent
    CHAIN_NEEDS_TRACING = 2    # before a call whose extras are wanted
    CHAIN_NEEDS_CALL_END = 3   # after a call: its extras, or the root for its receipt
    CHAIN_NEEDS_DEPOSITS = 4   # read out of the block's logs
    CHAIN_NEEDS_REQUESTS = 5   # the hash of the block's requests
    CHAIN_NEEDS_ROOT = 6       # of the state after the block
    CHAIN_NEEDS_WORLD = 7      # an empty one for the next block
    CHAIN_REFUSED = 8
    CHAIN_CANCELLED = 9
    CHAIN_OUT_OF_MEMORY = 10


# What the block under way does next.
cdef enum Stage:
    DRAFTING = 0
    OPENING = 1
    RUNNING_CALLS = 2
    PAYING = 3
    ASKING_QUEUES = 4
    HASHING = 5
    SEALING = 6


# What a fork's rules mean for a block.
cdef struct BlockRules:
    const Schedule* schedule
    uint32_t header_fields     # which fields a header has
    Word reward                # of the miner, in wei; 0 under proof of stake
    SystemContracts contracts


# A block to run, and after its run the block itself.
cdef struct ChainBlock:
    const PlannedBlock* plan   # NULL: it fills a gap between numbers
    uint64_t number
    uint64_t time
    size_t rules
    HeaderFields header
    Word blob_base_fee
    Hash hash
    uint64_t size              # of its RLP
    size_t first_call          # into the records of calls, and into the transactions
    size_t call_count


cdef class Chain:
    cdef BlockExecutor b
    cdef Deadline deadline     # the machine reads its request
    cdef Plan plan
    cdef Layer base_layer      # what the world reads from
    cdef Layer layer           # what its next changes are committed on
    cdef Stage stage
    cdef size_t at             # the block under way
    cdef size_t call_at        # the call under way, counted in its block
    cdef bint fees_known
    cdef bint traced           # the next call is prepared for its extras
    cdef bint needs_roots
    cdef bint has_extras
    cdef bint renews_worlds    # with every block
    cdef bint block_has_deposits
    cdef bint is_merged
    cdef bint optional_contracts
    cdef bint fills_gaps       # between the view's block and the first one, with empty blocks
    cdef uint64_t spacing
    cdef uint64_t budget
    cdef bint has_budget
    cdef uint64_t output_left
    cdef TxOptions tx_options
    cdef TxResult result       # of the call run last
    cdef Refusal refusal
    cdef PrecompileMoves moves
    cdef HeaderFields base     # of what the block on top of the view needs of its parent
    cdef Hash* hash_memory     # room for the most blocks, then the known ancestors
    cdef Hash* hashes          # into it: of the blocks to come, last first, then the known ones
    cdef size_t known_ancestors
    cdef Address deposit_contract
    cdef List rules            # BlockRules
    cdef List blocks           # ChainBlock
    cdef Body body
    cdef Buffer scratch
    cdef Buffer queues[QUEUE_COUNT]  # of requests, in the order of their contracts' calls
    cdef bytes deposits
    cdef Records records
    cdef Buffer text           # memory for whoever writes the answer

    cdef ChainBlock* block(self, size_t index) noexcept nogil
    cdef const BlockRules* rules_of(self, const ChainBlock* block) noexcept nogil
    cdef Halt plan_blocks(self) noexcept nogil
    cdef bint count_calls(self) noexcept nogil
    cdef ChainBlock* add_block(
        self, const PlannedBlock* plan, uint64_t number, uint64_t time
    ) noexcept nogil
    cdef Halt advance(self) noexcept nogil
    cdef Halt step(self, ChainBlock* block) noexcept nogil
    cdef Halt draft(self, ChainBlock* block) noexcept nogil
    cdef void fill_header(
        self, ChainBlock* block, const BlockRules* rules, const HeaderFields* parent
    ) noexcept nogil
    cdef void fill_context(self, const ChainBlock* block, const Schedule* s) noexcept nogil
    cdef Halt open_block(self, ChainBlock* block) noexcept nogil
    cdef Halt run_calls(self, ChainBlock* block) noexcept nogil
    cdef Halt run_call(self, const PlannedCall* call, size_t index) noexcept nogil
    cdef Halt check_call(self, const PlannedCall* call, size_t index, uint64_t gas) noexcept nogil
    cdef Halt note_call(self, const PlannedCall* call, bint capped) noexcept nogil
    cdef bint spend_output(self, uint64_t size) noexcept nogil
    cdef Halt pay(self, ChainBlock* block) noexcept nogil
    cdef bint has_deposits(self) noexcept nogil
    cdef Halt ask_queues(self, ChainBlock* block) noexcept nogil
    cdef bint has_requests(self) noexcept nogil
    cdef Halt hash_block(self, ChainBlock* block) noexcept nogil
    cdef bint hash_accesses(self, Hash* out) noexcept nogil
    cdef Halt seal(self, ChainBlock* block) noexcept nogil
    cdef Halt refused_call(self, TxError error) noexcept nogil
    cdef Halt halt_of(self, SystemOutcome outcome) noexcept nogil


# The rules that simulated calls are exempt from.
cdef void simulation_options(TxOptions* options, bint validation) noexcept nogil
# Fill in the refusal for a queue contract that has no code or failed.
cdef void refuse_queue(
    Refusal* refusal, const SystemContracts* contracts, size_t queue, SystemOutcome outcome,
    const Machine* m
) noexcept nogil
