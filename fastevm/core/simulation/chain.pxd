# A simulated chain: blocks of calls, each executed on the state after the previous block.
from libc.stdint cimport uint32_t, uint64_t

from fastevm.core.execution.block.block_executor cimport BlockExecutor
from fastevm.core.execution.block.header cimport HeaderFields
from fastevm.core.execution.block.system_calls cimport SystemOutcome
from fastevm.core.execution.block.system_operations cimport QUEUE_COUNT, SystemContracts
from fastevm.core.execution.transaction.transaction_data cimport Tx
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


# Why `SimulatedChain.advance` stopped. For CHAIN_NEEDS_..., the caller provides the item and calls
# `advance` again.
cdef enum Halt:
    CHAIN_DONE = 0
    CHAIN_NEEDS_FEES = 1       # fees of the next block, which need arbitrary-precision arithmetic
    CHAIN_NEEDS_TRACING = 2    # the next call has extras: prepare the recorders
    CHAIN_NEEDS_CALL_END = 3   # a call is done: collect its extras, or a state root for its receipt
    CHAIN_NEEDS_DEPOSITS = 4   # deposits from the block's logs
    CHAIN_NEEDS_REQUESTS = 5   # the hash of the block's requests
    CHAIN_NEEDS_ROOT = 6       # state root after the block
    CHAIN_NEEDS_WORLD = 7      # an empty world for the next block
    CHAIN_REFUSED = 8
    CHAIN_CANCELLED = 9
    CHAIN_OUT_OF_MEMORY = 10


# The next step of the current block.
cdef enum Stage:
    DRAFTING = 0
    OPENING = 1
    RUNNING_CALLS = 2
    PAYING = 3
    ASKING_QUEUES = 4
    HASHING = 5
    SEALING = 6


# The rules of a fork, prepared for the executor.
cdef struct BlockRules:
    const Schedule* schedule
    uint32_t header_fields     # bitmap of the fields that a header has: HeaderFields.present
    Word reward                # reward of the miner in wei; 0 under proof of stake
    SystemContracts contracts


# A block to execute. After its execution, the finished block.
cdef struct ChainBlock:
    const PlannedBlock* plan   # NULL for a block that fills a gap between block numbers
    uint64_t number
    uint64_t time
    size_t rules
    HeaderFields header
    Word blob_base_fee
    Hash hash
    uint64_t size              # bytes of the block's RLP
    size_t first_call          # index into the call records and the transactions
    size_t call_count


cdef class SimulatedChain:
    cdef BlockExecutor b
    cdef Deadline deadline     # the machine's cancel flag points to its request
    cdef Plan plan
    cdef Layer base_layer      # the state that the world reads from
    cdef Layer layer           # the layer that the next changes are committed to
    cdef Stage stage
    cdef size_t at             # index of the current block
    cdef size_t call_at        # index of the current call in its block
    cdef bint fees_known
    cdef bint traced           # the recorders are ready for the next call
    cdef bint needs_roots
    cdef bint has_extras
    cdef bint renews_worlds    # start every block with an empty world
    cdef bint block_has_deposits
    cdef bint is_merged
    cdef bint optional_contracts
    cdef bint fills_gaps       # fill block numbers between the base and the first block with empty blocks
    cdef uint64_t spacing
    cdef uint64_t budget
    cdef bint has_budget
    cdef uint64_t output_left
    cdef TxOptions tx_options
    cdef Tx tx                 # the last call, as it was executed
    cdef TxResult result       # result of the last call
    cdef Refusal refusal
    cdef PrecompileMoves moves
    cdef HeaderFields base     # the header fields of the base block that its child needs
    cdef Hash* hash_memory     # MAX_BLOCKS hashes for new blocks, then the known ancestors
    cdef Hash* hashes  # in `hash_memory`: hashes of the new blocks (last first), then of ancestors
    cdef size_t known_ancestors
    cdef Address deposit_contract
    cdef List rules            # BlockRules
    cdef List blocks           # ChainBlock
    cdef Body body
    cdef Buffer scratch
    cdef Buffer queues[QUEUE_COUNT]  # requests, in the order of QUEUES
    cdef bytes deposits
    cdef Records records
    cdef Buffer text           # scratch memory for encoders of the answer

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


# Set the options of simulated calls: the validity rules that do not apply to them.
cdef void simulation_options(TxOptions* options, bint validation) noexcept nogil
# Fill in the refusal for a queue contract that has no code or whose call failed.
cdef void refuse_queue(
    Refusal* refusal, const SystemContracts* contracts, size_t queue, SystemOutcome outcome,
    const Machine* m
) noexcept nogil
