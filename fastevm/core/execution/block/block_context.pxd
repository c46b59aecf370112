# What the machine knows of its block, from and to every other form of it.
from fastevm.core.execution.block.header cimport HeaderFields
from fastevm.core.interpreter.machine cimport BlockContext
from fastevm.core.spec.schedule cimport Schedule


# All of these leave the ancestors as they are, fill_context zeroes them.
# From a Header and the price of blob gas.
cdef int fill_context(BlockContext* context, header, object chain_id, object blob_price) except -1
# From a header in C; the chain's ID and the price of blob gas stay.
cdef void fill_from_fields(
    BlockContext* context, const HeaderFields* h, const Schedule* s
) noexcept nogil
# From and to a BlockEnvironment.
cdef int fill_environment(BlockContext* context, object environment) except -1
cdef object environment_value(const BlockContext* context)
# Set the member that BlockEnvironment has under this name; 0 if it has none. Raises TypeError or
# ValueError for a wrong value.
cdef bint context_put(BlockContext* context, str name, object value) except -1
