# A simulated chain without Python in it: blocks of calls, each on the state the one before left.
from libc.stdint cimport uint64_t

from fastevm.execution.header cimport HeaderFields
from fastevm.execution.outcome cimport TxOptions, TxResult
from fastevm.execution.running cimport RunningBlock
from fastevm.primitives.buffer cimport Buffer
from fastevm.primitives.hashes cimport Address, Hash
from fastevm.primitives.word cimport Word
from fastevm.simulate.body cimport Body
from fastevm.simulate.chunk cimport Records
from fastevm.simulate.jobs cimport CallJob, List
from fastevm.simulate.request cimport BlockJob, Request
from fastevm.spec.schedule cimport ForkSchedule
from fastevm.state.layer cimport Layer


# How far the chain has come when it stops.
cdef enum Halt:
    CHAIN_DONE = 0
    CHAIN_NEEDS_FEES = 1      # the fees of the next block follow from its parent by long arithmetic
    CHAIN_NEEDS_ROOT = 2      # the block has run, its state has no root yet
    CHAIN_ODD = 3             # refused, or beyond what is done here: the general way knows what
    CHAIN_CANCELLED = 4
    CHAIN_OUTPUT_CAP = 5
    CHAIN_OUT_OF_MEMORY = 6


cdef enum Stage:
    DRAFTING = 0
    RUNNING_CALLS = 1
    SEALING = 2


# A block of the plan, and after its run the block itself.
cdef struct ChainBlock:
    BlockJob* job             # NULL: it fills a gap
    uint64_t number
    uint64_t time
    HeaderFields header
    Word blob_base_fee
    Hash hash
    uint64_t size             # of its RLP
    size_t first_call         # into the records of calls, and into the hashes of transactions
    size_t call_count


cdef class ChainRun:
    cdef RunningBlock b
    cdef bint cancelled
    cdef Request request
    cdef ForkSchedule schedule
    cdef Layer layer
    cdef object view
    cdef Stage stage
    cdef size_t at                # the block under way
    cdef bint fees_known
    cdef bint needs_roots
    cdef bint optional_contracts
    cdef uint64_t spacing
    cdef uint64_t budget
    cdef bint has_budget
    cdef uint64_t output_left
    cdef TxOptions options
    cdef HeaderFields base        # of what the block on top of the view needs of its parent
    cdef Hash* hashes             # room for those of the plan's blocks, then the known ancestors
    cdef size_t known_ancestors
    cdef Address beacon_contract
    cdef Address history_contract
    cdef Address withdrawal_contract
    cdef Address consolidation_contract
    cdef Address deposit_contract
    cdef List blocks              # ChainBlock
    cdef List tx_hashes           # Hash
    cdef Body body                # of the block under way
    cdef Buffer scratch
    cdef Records records
    cdef Buffer text              # of the answer, for whoever writes it

    cdef int begin(self, object view, Request request, object options) except -1
    cdef int read_view(self) except -1
    cdef int read_parent(self, object header) except -1
    cdef int provide_fees(self) except -1
    cdef int provide_root(self) except -1
    cdef ChainBlock* block(self, size_t index) noexcept nogil
    cdef bint plan(self) noexcept nogil
    cdef ChainBlock* add_block(self, BlockJob* job, uint64_t number, uint64_t time) noexcept nogil
    cdef Halt advance(self) noexcept nogil
    cdef Halt draft(self) noexcept nogil
    cdef void fill_context(self, const ChainBlock* block) noexcept nogil
    cdef Halt run_block(self) noexcept nogil
    cdef Halt open_block(self, ChainBlock* block) noexcept nogil
    cdef Halt run_call(self, CallJob* job) noexcept nogil
    cdef bint spend_output(self) noexcept nogil
    cdef bint has_deposits(self) noexcept nogil
    cdef Halt close_block(self) noexcept nogil
    cdef Halt ask(self, const Address* contract) noexcept nogil
    cdef bint set_roots(self, ChainBlock* block) noexcept nogil
    cdef bint seal(self) noexcept nogil
