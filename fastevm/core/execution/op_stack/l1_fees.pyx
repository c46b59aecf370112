"""Fees on OP-stack chains besides gas: the L1 data fee, the operator fee and the DA footprint.

Source: the OP Stack specification, execution engine (Bedrock to Jovian) and predeploys (L1Block).
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memset

from fastevm.core.execution.transaction.intrinsic cimport count_zero_bytes
from fastevm.core.execution.transaction.transaction_data cimport DEPOSIT_TX
from fastevm.core.primitives.fastlz cimport fastlz_length
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport (
    Word, word_add_carry, word_bits, word_copy, word_eq, word_from_int, word_is_zero, word_mul,
    word_set, word_to_int,
)
from fastevm.core.primitives.word_division cimport word_div
from fastevm.core.spec.schedule cimport ForkSchedule, Schedule
from fastevm.core.state.account cimport Account, Slot
from fastevm.core.state.world cimport World, world_account, world_slot


cdef enum:
    MILLION = 1_000_000
    BYTE_GAS = 16                   # gas per calldata byte that is not zero (EIP-2028)
    ZERO_BYTE_GAS = 4
    SIGNATURE_GAS = 68 * BYTE_GAS   # Bedrock's L1 fee adds it for the signature

    BEDROCK_FEE = 1                 # values of Schedule.l1_fee_version
    REGOLITH_FEE = 2
    ECOTONE_FEE = 3

    ISTHMUS_OPERATOR_FEE = 1        # value of Schedule.operator_fee_version
    JOVIAN_FACTOR = 100             # Jovian multiplies the operator scalar by it

    # Slots of L1Block.
    BASE_FEE_SLOT = 1
    SCALARS_SLOT = 3
    OVERHEAD_SLOT = 5
    SCALAR_SLOT = 6
    BLOB_BASE_FEE_SLOT = 7
    OPERATOR_SLOT = 8

# Fjord's linear model of the compressed size, in millionths of a byte.
cdef uint64_t SIZE_PER_FASTLZ_BYTE = 836_500
cdef uint64_t SIZE_OFFSET = 42_585_600
cdef uint64_t LEAST_SIZE = 100 * <uint64_t>MILLION


cdef void predeploy(Address* out, uint8_t number):
    """Sets ``out`` to the address 0x42000000000000000000000000000000000000NN."""
    memset(out.b, 0, 20)
    out.b[0] = 0x42
    out.b[19] = number


cdef Address L1_BLOCK
predeploy(&L1_BLOCK, 0x15)
predeploy(&BASE_FEE_VAULT, 0x19)
predeploy(&L1_FEE_VAULT, 0x1a)
predeploy(&OPERATOR_FEE_VAULT, 0x1b)


cdef bint read_slot(World* w, Account* a, uint64_t number, Word* out) noexcept nogil:
    cdef Word key
    cdef Slot* slot
    word_set(&key, number)
    slot = world_slot(w, a, &key)
    if slot == NULL:
        return False
    word_copy(out, &slot.current)
    return True


cdef bint l1_fees_read(const Schedule* schedule, World* w, L1Fees* out) noexcept nogil:
    cdef Account* contract = world_account(w, &L1_BLOCK)
    cdef bint old = schedule.l1_fee_version < ECOTONE_FEE
    memset(out, 0, sizeof(L1Fees))
    if contract == NULL or not read_slot(w, contract, BASE_FEE_SLOT, &out.base_fee):
        return False
    if not old:
        if not read_ecotone(w, contract, out):
            return False
        old = lacks_ecotone(out)
    if old and not (
        read_slot(w, contract, OVERHEAD_SLOT, &out.overhead)
        and read_slot(w, contract, SCALAR_SLOT, &out.scalar)
    ):
        return False
    if schedule.operator_fee_version or schedule.has_da_footprint:
        return read_operator(w, contract, out)
    return True


cdef bint read_ecotone(World* w, Account* contract, L1Fees* out) noexcept nogil:
    cdef Word scalars
    if not (
        read_slot(w, contract, SCALARS_SLOT, &scalars)
        and read_slot(w, contract, BLOB_BASE_FEE_SLOT, &out.blob_base_fee)
    ):
        return False
    # In the big-endian word, the two scalars are the bytes 16 to 19 and 20 to 23.
    out.base_fee_scalar = scalars.d[1] >> 32
    out.blob_base_fee_scalar = scalars.d[1] & <uint64_t>0xffffffff
    return True


cdef bint read_operator(World* w, Account* contract, L1Fees* out) noexcept nogil:
    cdef Word operator
    if not read_slot(w, contract, OPERATOR_SLOT, &operator):
        return False
    # In the big-endian word, the three values begin at the bytes 24, 20 and 18.
    out.operator_constant = operator.d[0]
    out.operator_scalar = operator.d[1] & <uint64_t>0xffffffff
    out.footprint_scalar = (operator.d[1] >> 32) & <uint64_t>0xffff
    return True


# --- saturating arithmetic: a result is at most 2^256 - 1 ---

cdef inline void word_highest(Word* r) noexcept nogil:
    r.d[0] = r.d[1] = r.d[2] = r.d[3] = ~<uint64_t>0


cdef void multiply(Word* r, const Word* a, const Word* b) noexcept nogil:
    cdef Word product, quotient
    word_mul(&product, a, b)
    if word_bits(a) + word_bits(b) > 256:
        word_div(&quotient, &product, b)
        if not word_eq(&quotient, a):
            word_highest(&product)
    word_copy(r, &product)


cdef void multiply64(Word* r, const Word* a, uint64_t b) noexcept nogil:
    cdef Word factor
    word_set(&factor, b)
    multiply(r, a, &factor)


cdef void divide64(Word* r, const Word* a, uint64_t b) noexcept nogil:
    cdef Word divisor, dividend
    word_set(&divisor, b)
    word_copy(&dividend, a)
    word_div(r, &dividend, &divisor)


cdef void add(Word* r, const Word* a, const Word* b) noexcept nogil:
    if word_add_carry(r, a, b):
        word_highest(r)


# --- the fees ---

cdef uint64_t estimated_size(const uint8_t* raw, size_t size) noexcept nogil:
    """Returns Fjord's estimate of the size after compression, in millionths of a byte."""
    cdef uint64_t scaled = fastlz_length(raw, size) * SIZE_PER_FASTLZ_BYTE
    return scaled - SIZE_OFFSET if scaled > LEAST_SIZE + SIZE_OFFSET else LEAST_SIZE


cdef uint64_t calldata_gas(const uint8_t* raw, size_t size) noexcept nogil:
    cdef uint64_t zeros = count_zero_bytes(raw, size)
    return zeros * ZERO_BYTE_GAS + (size - zeros) * BYTE_GAS


cdef void weighted_price(const L1Fees* fees, Word* out) noexcept nogil:
    """Computes 16 * base fee * base fee scalar + blob base fee * blob base fee scalar."""
    cdef Word blobs
    multiply64(out, &fees.base_fee, fees.base_fee_scalar)
    multiply64(out, out, BYTE_GAS)
    multiply64(&blobs, &fees.blob_base_fee, fees.blob_base_fee_scalar)
    add(out, out, &blobs)


# Returns whether Ecotone's parameters are still unset. This is so in Ecotone's first block, because
# its L1 attributes still have the format of the previous fork. op-geth checks the same two members.
cdef bint lacks_ecotone(const L1Fees* fees) noexcept nogil:
    return (
        (fees.base_fee_scalar | fees.blob_base_fee_scalar) == 0
        and word_is_zero(&fees.blob_base_fee)
    )


cdef void l1_data_fee(
    const Schedule* schedule, const L1Fees* fees, const uint8_t* raw, size_t size, Word* fee,
    Word* gas
) noexcept nogil:
    cdef int64_t version = schedule.l1_fee_version
    cdef uint64_t measure
    word_set(fee, 0)
    word_set(gas, 0)
    if version == 0 or size == 0 or raw[0] == DEPOSIT_TX:
        return
    if version >= ECOTONE_FEE and lacks_ecotone(fees):
        version = REGOLITH_FEE
    if version <= REGOLITH_FEE:
        word_set(gas, calldata_gas(raw, size) + (SIGNATURE_GAS if version == BEDROCK_FEE else 0))
        add(gas, gas, &fees.overhead)
        multiply(fee, gas, &fees.base_fee)
        multiply(fee, fee, &fees.scalar)
        divide64(fee, fee, MILLION)
        return
    weighted_price(fees, fee)
    if version == ECOTONE_FEE:
        measure = calldata_gas(raw, size)
        word_set(gas, measure)
        multiply64(fee, fee, measure)
        divide64(fee, fee, BYTE_GAS * MILLION)
        return
    measure = estimated_size(raw, size)
    word_set(gas, measure * BYTE_GAS // MILLION)
    multiply64(fee, fee, measure)
    divide64(fee, fee, <uint64_t>MILLION * MILLION)


cdef void operator_fee(
    const Schedule* schedule, const L1Fees* fees, uint64_t gas, Word* out
) noexcept nogil:
    cdef Word constant
    word_set(out, 0)
    if schedule.operator_fee_version == 0:
        return
    word_set(out, gas)
    multiply64(out, out, fees.operator_scalar)
    if schedule.operator_fee_version == ISTHMUS_OPERATOR_FEE:
        divide64(out, out, MILLION)
    else:
        multiply64(out, out, JOVIAN_FACTOR)
    word_set(&constant, fees.operator_constant)
    add(out, out, &constant)


cdef uint64_t da_footprint(const L1Fees* fees, const uint8_t* raw, size_t size) noexcept nogil:
    return estimated_size(raw, size) // MILLION * fees.footprint_scalar


# --- for Python ---

cdef int fees_of(L1Fees* out, object attributes) except -1:
    memset(out, 0, sizeof(L1Fees))
    word_from_int(&out.base_fee, attributes.base_fee)
    word_from_int(&out.blob_base_fee, attributes.blob_base_fee)
    word_from_int(&out.overhead, attributes.fee_overhead)
    word_from_int(&out.scalar, attributes.fee_scalar)
    out.base_fee_scalar = attributes.base_fee_scalar
    out.blob_base_fee_scalar = attributes.blob_base_fee_scalar
    out.operator_scalar = attributes.operator_fee_scalar
    out.operator_constant = attributes.operator_fee_constant
    out.footprint_scalar = attributes.da_footprint_gas_scalar
    return 0


def l1_data_fee_of(bytes raw not None, attributes, ForkSchedule schedule not None):
    """Returns the L1 data fee in wei and the L1 gas for a transaction's canonical bytes.

    Receipts show the L1 gas. Source: OP Stack specification, execution engine, "L1-Cost fees".
    """
    cdef L1Fees fees
    cdef Word fee, gas
    memset(&fees, 0, sizeof(fees))
    fees_of(&fees, attributes)
    l1_data_fee(&schedule.c, &fees, raw, len(raw), &fee, &gas)
    return word_to_int(&fee), word_to_int(&gas)


def operator_fee_of(uint64_t gas, attributes, ForkSchedule schedule not None):
    """Returns the operator fee in wei for ``gas`` gas (Isthmus and Jovian, execution engine)."""
    cdef L1Fees fees
    cdef Word fee
    memset(&fees, 0, sizeof(fees))
    fees_of(&fees, attributes)
    operator_fee(&schedule.c, &fees, gas, &fee)
    return word_to_int(&fee)


def da_footprint_of(bytes raw not None, attributes):
    """Returns how much a transaction's canonical bytes add to the DA footprint, in gas (Jovian)."""
    cdef L1Fees fees
    memset(&fees, 0, sizeof(fees))
    fees_of(&fees, attributes)
    return da_footprint(&fees, raw, len(raw))


def compressed_size(bytes raw not None):
    """Returns the length of ``raw`` after FastLZ compression, in bytes."""
    return fastlz_length(raw, len(raw))
