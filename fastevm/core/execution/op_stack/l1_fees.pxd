# Fees on OP-stack chains besides gas: the L1 data fee, the operator fee and the DA footprint.
from libc.stdint cimport uint8_t, uint64_t

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.world cimport World


# The fee parameters of a block, as its L1 attributes set them.
cdef struct L1Fees:
    Word base_fee                  # base fee of L1, wei
    Word blob_base_fee             # blob base fee of L1, wei
    Word overhead                  # gas, until Ecotone
    Word scalar                    # millionths, until Ecotone
    uint64_t base_fee_scalar       # millionths
    uint64_t blob_base_fee_scalar  # millionths
    uint64_t operator_scalar
    uint64_t operator_constant     # wei
    uint64_t footprint_scalar      # gas per byte


# The accounts that receive the fees.
cdef Address BASE_FEE_VAULT
cdef Address L1_FEE_VAULT
cdef Address OPERATOR_FEE_VAULT

# Reads the parameters that the fork uses from the storage of the L1Block predeploy. Returns False
# if state is missing: see world.need.
cdef bint l1_fees_read(const Schedule* schedule, World* w, L1Fees* out) noexcept nogil
# Computes the L1 data fee in wei of an encoded transaction, and the L1 gas that receipts show.
# Amounts saturate at 2^256 - 1.
cdef void l1_data_fee(
    const Schedule* schedule, const L1Fees* fees, const uint8_t* raw, size_t size, Word* fee,
    Word* gas
) noexcept nogil
# Computes the operator fee in wei for `gas` gas.
cdef void operator_fee(
    const Schedule* schedule, const L1Fees* fees, uint64_t gas, Word* out
) noexcept nogil
# Returns the gas that an encoded transaction adds to the DA footprint of its block.
cdef uint64_t da_footprint(const L1Fees* fees, const uint8_t* raw, size_t size) noexcept nogil
