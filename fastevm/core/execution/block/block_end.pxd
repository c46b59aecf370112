# The end of a block without an access list, on several threads: its state, the copy of its receipts
# that stays, and their root, side by side.
from fastevm.core.execution.block.block_executor cimport BlockExecutor
from fastevm.core.execution.block.packed_receipts cimport PackedReceipts
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.state.layer cimport Layer


cdef enum:
    RECEIPTS_OF_AN_END = 64   # for fewer no thread is woken


cdef class BlockEnd:
    cdef Layer layer          # after the block
    cdef PackedReceipts packed
    cdef Hash root            # of the receipts


# End a block whose receipts are encoded; `layer`: what the world's changes come on top of, above no
# remote state. Raises MemoryError.
cdef BlockEnd block_end(Layer layer, BlockExecutor* b, int threads, object blob_gas_price)
