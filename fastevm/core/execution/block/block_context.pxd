# What the machine knows of its block.
from fastevm.core.interpreter.machine cimport BlockContext


# From a header and the price of blob gas; its ancestors are left out.
cdef int fill_context(BlockContext* context, header, object chain_id, object blob_price) except -1
