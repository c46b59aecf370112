# Converts the machine's block context from and to headers and environments.
from fastevm.core.execution.block.header cimport HeaderFields
from fastevm.core.interpreter.machine cimport BlockContext
from fastevm.core.primitives.word cimport Word
from fastevm.core.spec.schedule cimport Schedule


# All of these keep the ancestors, except fill_context, which clears them. From a Header and the
# blob base fee.
cdef int fill_context(BlockContext* context, header, object chain_id, object blob_price) except -1
# From a C header; keeps the chain id and the blob base fee.
cdef void fill_from_fields(
    BlockContext* context, const HeaderFields* h, const Schedule* s
) noexcept nogil
# For a block with the form of Arbitrum's under Arbitrum's rules: takes the number of L1's block from
# the mix hash, which is in `prev_randao` before.
cdef void context_of_arbos(
    BlockContext* context, const Schedule* s, const Word* difficulty
) noexcept nogil
# From and to a BlockEnvironment.
cdef int fill_environment(BlockContext* context, object environment) except -1
cdef object environment_value(const BlockContext* context)
# Set the member with the name of a BlockEnvironment field. Returns 0 if there is no such field.
# Raises TypeError or ValueError for an invalid value.
cdef bint context_put(BlockContext* context, str name, object value) except -1
