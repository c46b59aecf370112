# What a transaction on an OP-stack chain pays besides its gas: for data on L1, and to the operator.
from libc.stdint cimport uint8_t, uint64_t

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.world cimport World


# The fee parameters of a block, as its L1 attributes set them.
cdef struct L1Fees:
    Word base_fee                  # of L1, wei
    Word blob_base_fee             # of L1, wei
    Word overhead                  # gas, until Ecotone
    Word scalar                    # millionths, until Ecotone
    uint64_t base_fee_scalar       # millionths
    uint64_t blob_base_fee_scalar  # millionths
    uint64_t operator_scalar
    uint64_t operator_constant     # wei
    uint64_t footprint_scalar      # gas per byte


# Where the fees go.
cdef Address BASE_FEE_VAULT
cdef Address L1_FEE_VAULT
cdef Address OPERATOR_FEE_VAULT

# The parameters that the rules use, from the storage of L1Block. False: see world.need.
cdef bint l1_fees_read(const Schedule* schedule, World* w, L1Fees* out) noexcept nogil
# The L1 data fee in wei of an encoded transaction, and the L1 gas that clients show for it.
# Amounts stop at 2^256 - 1.
cdef void l1_data_fee(
    const Schedule* schedule, const L1Fees* fees, const uint8_t* raw, size_t size, Word* fee,
    Word* gas
) noexcept nogil
# The operator fee in wei for so much gas.
cdef void operator_fee(
    const Schedule* schedule, const L1Fees* fees, uint64_t gas, Word* out
) noexcept nogil
# The share of an encoded transaction in the block's DA footprint, in gas.
cdef uint64_t da_footprint(const L1Fees* fees, const uint8_t* raw, size_t size) noexcept nogil
