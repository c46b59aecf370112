# Ends a block without an access list on several threads: commits its state, copies its receipts and
# computes their root.
from fastevm.core.execution.block.block_executor cimport BlockExecutor
from fastevm.core.execution.block.packed_receipts cimport PackedReceipts
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.state.layer cimport Layer


cdef enum:
    RECEIPTS_OF_AN_END = 64   # blocks with fewer receipts end on one thread


cdef class BlockEnd:
    cdef Layer layer          # the state after the block
    cdef PackedReceipts packed
    cdef Hash root            # receipts root


# End a block whose receipts are already encoded. `layer` is the state before the block and must not
# be remote. Raises MemoryError.
cdef BlockEnd block_end(Layer layer, BlockExecutor* b, int threads, object blob_gas_price)
