# Intrinsic gas of a transaction, and its calldata floor.
from libc.stdint cimport int64_t, uint8_t, uint64_t

from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.primitives.hashes cimport address_eq
from fastevm.core.primitives.intrinsics cimport load64, popcount32
from fastevm.core.primitives.word cimport word_is_zero
from fastevm.core.spec.constants cimport TOKENS_PER_NONZERO_BYTE
from fastevm.core.spec.schedule cimport Schedule


cdef struct IntrinsicGas:
    uint64_t gas              # regular gas charged at the start
    uint64_t state            # state gas charged at the start (the devnet of April 2026)
    uint64_t floor            # the least gas that a transaction pays for (EIP-7623); 0: no rule


# Counts zero bytes eight at a time: the sum carries into a byte's top bit if and only if its low
# bits are not all zero.
cdef inline uint64_t count_zero_bytes(const uint8_t* data, size_t size) noexcept nogil:
    cdef uint64_t low = <uint64_t>0x7f7f7f7f7f7f7f7f
    cdef uint64_t x, zeros = 0
    cdef size_t i = 0
    while i + 8 <= size:
        x = load64(data + i)
        x = ~(((x & low) + low) | x | low)
        zeros += popcount32(<unsigned int>(x >> 32)) + popcount32(<unsigned int>x)
        i += 8
    while i < size:
        zeros += data[i] == 0
        i += 1
    return zeros


# Adds the charge for the accounts that the transaction itself accesses (EIP-2780), and computes a
# floor that counts every byte (EIP-7976, EIP-7981).
cdef inline void add_resources(
    const Schedule* schedule, const Tx* tx, IntrinsicGas* out
) noexcept nogil:
    cdef uint64_t base = schedule.tx_cost, resources = 0
    if tx.is_create:
        if schedule.tx_recipient_cost != 0:
            base += schedule.tx_create_cost
    elif not address_eq(&tx.to, &tx.sender):
        resources = schedule.tx_recipient_cost
        if not word_is_zero(&tx.value):
            resources += schedule.tx_value_cost
    out.gas += resources
    out.floor = base + resources + tx.size * schedule.tx_floor_byte_cost
    out.floor += tx.access_count * schedule.tx_floor_address_cost
    out.floor += tx.access_slot_count * schedule.tx_floor_slot_cost


# Computes the intrinsic gas and the floor (Yellow Paper, section 6.2; EIP-2028, 2930, 3860, 7623
# and 7702). Every count is bounded by the bytes of the envelope (below 2^47) and every price by
# 2^16, so the sums cannot overflow.
cdef inline void intrinsic_gas(
    const Schedule* schedule, const Tx* tx, IntrinsicGas* out
) noexcept nogil:
    cdef uint64_t zeros = count_zero_bytes(tx.data, tx.size)
    cdef uint64_t others = tx.size - zeros
    cdef int64_t gas = schedule.tx_cost
    gas += zeros * schedule.tx_zero_byte_cost + others * schedule.tx_nonzero_byte_cost
    if tx.is_create:
        gas += schedule.tx_create_cost + ((tx.size + 31) >> 5) * schedule.create_word_cost
    gas += tx.access_count * schedule.tx_access_address_cost
    gas += tx.access_slot_count * schedule.tx_access_slot_cost
    gas += tx.authorization_count * schedule.authorization_cost
    out.gas = <uint64_t>gas
    out.floor = 0
    out.state = 0
    if schedule.tx_floor_byte_cost != 0:
        add_resources(schedule, tx, out)
    elif schedule.tx_floor_token_cost != 0:
        zeros += others * TOKENS_PER_NONZERO_BYTE
        out.floor = schedule.tx_cost + zeros * schedule.tx_floor_token_cost
