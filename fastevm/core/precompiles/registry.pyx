"""The table of precompiles: look-up by address, and execution without the GIL."""

from fastevm.core.precompiles.blake2f cimport blake2f
from fastevm.core.precompiles.bls12_381 cimport (
    bls12_g1add, bls12_g2add, bls12_map_fp2_to_g2, bls12_map_fp_to_g1, bls12_pairing,
)
from fastevm.core.precompiles.bls12_msm cimport bls12_g1msm, bls12_g2msm
from fastevm.core.precompiles.bn254.contracts cimport bn254_add, bn254_mul, bn254_pairing
from fastevm.core.precompiles.ecrecover cimport ecrecover
from fastevm.core.precompiles.identity cimport identity
from fastevm.core.precompiles.modexp cimport modexp
from fastevm.core.precompiles.p256 cimport p256_verify
from fastevm.core.precompiles.point_evaluation cimport point_evaluation
from fastevm.core.precompiles.ripemd160 cimport ripemd160
from fastevm.core.precompiles.sha256 cimport sha256
from fastevm.core.primitives.buffer cimport buffer_free
from fastevm.core.primitives.cancellation cimport CANCEL_REQUEST, NO_REQUEST
from fastevm.core.primitives.intrinsics cimport load64
from fastevm.core.spec.schedule cimport PRECOMPILE_LIMIT, ForkSchedule

from fastevm.core.spec.schedule import schedule_for


cdef enum:
    ECRECOVER = 0x01
    SHA256 = 0x02
    RIPEMD160 = 0x03
    IDENTITY = 0x04
    MODEXP = 0x05
    BN254_ADD = 0x06
    BN254_MUL = 0x07
    BN254_PAIRING = 0x08
    BLAKE2F = 0x09
    POINT_EVALUATION = 0x0a
    BLS12_G1ADD = 0x0b
    BLS12_G1MSM = 0x0c
    BLS12_G2ADD = 0x0d
    BLS12_G2MSM = 0x0e
    BLS12_PAIRING = 0x0f
    BLS12_MAP_FP_TO_G1 = 0x10
    BLS12_MAP_FP2_TO_G2 = 0x11
    P256_VERIFY = PRECOMPILE_LIMIT

    P256_VERIFY_ADDRESS = 0x100


cdef uint32_t precompile_at(const Schedule* schedule, const Address* address) noexcept nogil:
    cdef uint32_t number
    if (load64(address.b) | load64(&address.b[8]) | address.b[16] | address.b[17]) != 0:
        return 0
    number = (<uint32_t>address.b[18] << 8) | address.b[19]
    if number == P256_VERIFY_ADDRESS:
        number = P256_VERIFY
    elif number >= P256_VERIFY:
        return 0
    return number if schedule.precompile_active[number] else 0


cdef PrecompileOutcome dispatch(
    uint32_t number, const Schedule* schedule, const uint8_t* data, size_t size, int64_t* gas,
    Buffer* output, const int* cancel,
) noexcept nogil:
    cdef int64_t most = schedule.precompile_max_input[number]
    if most != 0 and size > <size_t>most:
        return PRECOMPILE_INVALID
    if number == ECRECOVER:
        return ecrecover(data, size, gas, output)
    elif number == SHA256:
        return sha256(data, size, gas, output)
    elif number == RIPEMD160:
        return ripemd160(data, size, gas, output)
    elif number == IDENTITY:
        return identity(data, size, gas, output)
    elif number == MODEXP:
        return modexp(schedule, data, size, gas, output)
    elif number == BN254_ADD:
        return bn254_add(schedule, data, size, gas, output)
    elif number == BN254_MUL:
        return bn254_mul(schedule, data, size, gas, output)
    elif number == BN254_PAIRING:
        return bn254_pairing(schedule, data, size, gas, output, cancel)
    elif number == BLAKE2F:
        return blake2f(data, size, gas, output, cancel)
    elif number == POINT_EVALUATION:
        return point_evaluation(data, size, gas, output)
    elif number == P256_VERIFY:
        return p256_verify(schedule, data, size, gas, output)
    return dispatch_bls12(number, data, size, gas, output, cancel)


cdef PrecompileOutcome dispatch_bls12(
    uint32_t number, const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
    const int* cancel,
) noexcept nogil:
    if number == BLS12_G1ADD:
        return bls12_g1add(data, size, gas, output)
    elif number == BLS12_G1MSM:
        return bls12_g1msm(data, size, gas, output, cancel)
    elif number == BLS12_G2ADD:
        return bls12_g2add(data, size, gas, output)
    elif number == BLS12_G2MSM:
        return bls12_g2msm(data, size, gas, output, cancel)
    elif number == BLS12_PAIRING:
        return bls12_pairing(data, size, gas, output, cancel)
    elif number == BLS12_MAP_FP_TO_G1:
        return bls12_map_fp_to_g1(data, size, gas, output)
    elif number == BLS12_MAP_FP2_TO_G2:
        return bls12_map_fp2_to_g2(data, size, gas, output)
    return PRECOMPILE_INVALID


cdef PrecompileOutcome precompile_run(
    uint32_t number, const Schedule* schedule, const uint8_t* data, size_t size, int64_t* gas,
    Buffer* output, const int* cancel,
) noexcept nogil:
    cdef PrecompileOutcome outcome = dispatch(number, schedule, data, size, gas, output, cancel)
    if outcome != PRECOMPILE_OK:
        gas[0] = 0
        output.size = 0
    return outcome


def number_at(bytes address not None, str fork="osaka"):
    """Returns the number of the precompile at a 20-byte address in a fork, or 0.

    Numbers 0x01 to 0x11 equal the address; 0x12 is P256VERIFY at 0x100. Raises ValueError for an
    address of another length and ``UnknownForkError`` for an unknown fork.
    """
    cdef ForkSchedule schedule = schedule_for(fork)
    if len(address) != 20:
        raise ValueError(f"an address has 20 bytes, not {len(address)}")
    return precompile_at(&schedule.c, <const Address*><const uint8_t*>address)


def run(
    uint32_t number, bytes data not None, int64_t gas, str fork="osaka", bint is_cancelled=False,
):
    """Runs precompile ``number`` (see ``number_at``) on ``data`` with ``gas`` and a fork's prices.

    Returns (ok, output, gas left). If the gas does not suffice or the input is invalid, ok is
    False, the output is empty and no gas is left. ``is_cancelled``: run as if the caller had
    cancelled the execution. Raises ValueError if the fork has no such precompile,
    ``UnknownForkError`` for an unknown fork, TimeoutError if the precompile noticed the
    cancellation, and MemoryError.
    """
    cdef ForkSchedule schedule = schedule_for(fork)
    cdef const uint8_t* bytes_in = data
    cdef size_t size = len(data)
    cdef Buffer output = Buffer(NULL, 0, 0)
    cdef int cancel = CANCEL_REQUEST if is_cancelled else NO_REQUEST
    cdef PrecompileOutcome outcome
    if number == 0 or number > PRECOMPILE_LIMIT or not schedule.c.precompile_active[number]:
        raise ValueError(f"{schedule.name} has no precompile number {number}")
    try:
        with nogil:
            outcome = precompile_run(
                number, &schedule.c, bytes_in, size, &gas, &output, &cancel
            )
        if outcome == PRECOMPILE_NO_MEMORY:
            raise MemoryError
        if outcome == PRECOMPILE_CANCELLED:
            raise TimeoutError("the precompile was cancelled")
        return outcome == PRECOMPILE_OK, output.bytes[:output.size], gas
    finally:
        buffer_free(&output)
