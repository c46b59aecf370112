# Converts the machine's block context from and to headers and environments.
from fastevm.core.execution.block.header cimport HeaderFields
from fastevm.core.interpreter.machine cimport BlockContext
from fastevm.core.primitives.word cimport Word
from fastevm.core.spec.schedule cimport Schedule


# Fills in the context from a Header and the blob base fee, and removes the ancestors. The other
# functions of this file do not change the ancestors.
cdef int fill_context(BlockContext* context, header, object chain_id, object blob_price) except -1
# Fills in the context from a C header. Keeps the chain id and the blob base fee.
cdef void fill_from_fields(
    BlockContext* context, const HeaderFields* h, const Schedule* s
) noexcept nogil
# If the block is an Arbitrum block (difficulty 1 under Arbitrum's rules), reads the L1 block number
# from the mix hash in `prev_randao`, and sets `prev_randao` to 1.
cdef void context_of_arbos(
    BlockContext* context, const Schedule* s, const Word* difficulty
) noexcept nogil
# Fill in the context from a BlockEnvironment, and return a BlockEnvironment with its values.
cdef int fill_environment(BlockContext* context, object environment) except -1
cdef object environment_value(const BlockContext* context)
# Sets the member of the context that corresponds to the field `name` of BlockEnvironment. Returns
# False if BlockEnvironment has no such field. Raises TypeError or ValueError for an invalid value.
cdef bint context_put(BlockContext* context, str name, object value) except -1
