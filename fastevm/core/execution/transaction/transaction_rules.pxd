# Validity rules of transactions, in checking order.
from libc.stdint cimport uint64_t

from fastevm.core.execution.transaction.intrinsic cimport IntrinsicGas
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxError, TxOptions, TxResult
from fastevm.core.primitives.word cimport Word
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.account cimport Account


# Check the rules that need no state: type, chain id, signature.
cdef TxError check_envelope(
    const Schedule* schedule, const Tx* tx, uint64_t chain_id, TxResult* result
) noexcept nogil
# Check the rules about the sender's account, the fees, and blobs and authorizations, in this order.
# The balance is checked later.
cdef TxError check_sender(
    const Schedule* schedule, const Tx* tx, const TxOptions* options, const Account* sender,
    TxResult* result
) noexcept nogil
cdef TxError check_fees(
    const Schedule* schedule, const Word* base_fee, const Tx* tx, const TxOptions* options,
    TxResult* result
) noexcept nogil
cdef TxError check_payload(
    const Schedule* schedule, const Word* blob_base_fee, const Tx* tx, const TxOptions* options,
    TxResult* result
) noexcept nogil
# Check the size of the init code (EIP-3860).
cdef TxError check_initcode(const Schedule* schedule, const Tx* tx, TxResult* result) noexcept nogil
# Check that the gas limit is at least the intrinsic gas and the floor.
cdef TxError check_gas(const Tx* tx, const IntrinsicGas* intrinsic, TxResult* result) noexcept nogil
# Check the caps on the gas limit (EIP-7825) and on regular gas (EIP-8037).
cdef TxError check_gas_caps(
    const Schedule* schedule, const Tx* tx, const IntrinsicGas* intrinsic, TxResult* result
) noexcept nogil
# Compute the sender's maximum cost in wei. Returns False if it exceeds 256 bits.
cdef bint highest_cost(const Schedule* schedule, const Tx* tx, Word* out) noexcept nogil
# Compute a * b. Returns False if the product exceeds 256 bits. `r` may alias `a`.
cdef bint word_times(Word* r, const Word* a, uint64_t b) noexcept nogil

cdef inline bint is_free(const Tx* tx, const TxOptions* options) noexcept nogil:
    """Returns whether both fee caps are zero and the options allow that."""
    return options.fees_optional and (
        tx.max_fee.d[0] | tx.max_fee.d[1] | tx.max_fee.d[2] | tx.max_fee.d[3]
        | tx.max_priority_fee.d[0] | tx.max_priority_fee.d[1] | tx.max_priority_fee.d[2]
        | tx.max_priority_fee.d[3]
    ) == 0
