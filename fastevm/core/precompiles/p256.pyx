"""Verifies signatures on P-256 with `cryptography`, precompile 0x100 (EIP-7951)."""

from libc.stdint cimport uint64_t
from libc.string cimport memset

from fastevm.core.precompiles.common cimport charge, size_output
from fastevm.core.precompiles.registry cimport (
    PRECOMPILE_NO_MEMORY, PRECOMPILE_OK, PRECOMPILE_OUT_OF_GAS, PrecompileOutcome,
)
from fastevm.core.primitives.word cimport Word, word_eq, word_is_zero, word_load, word_lt
from fastevm.core.primitives.word_division cimport word_addmod, word_mulmod


cdef enum:
    INPUT_SIZE = 160          # hash, r, s, x, y, a word each

cdef enum Verdict:
    REFUSED = 0
    VERIFIED = 1
    HOST_FAILED = 2           # out of memory or interrupted: no result

# The curve y^2 = x^3 + A x + B over the integers modulo PRIME, with ORDER points.
cdef Word PRIME, ORDER, A, B
word_load(&PRIME, bytes.fromhex("ffffffff00000001" + 16 * "0" + 8 * "0" + 24 * "f"))
word_load(&ORDER, bytes.fromhex(
    "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"))
word_load(&A, bytes.fromhex("ffffffff00000001" + 16 * "0" + 8 * "0" + 23 * "f" + "c"))
word_load(&B, bytes.fromhex(
    "5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b"))


cdef class Library:
    """The parts of `cryptography` used here, imported on first use because that takes 20 ms."""
    cdef object decode, encode_signature, invalid, curve, algorithm

    def __cinit__(self) -> None:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec, utils
        from cryptography.hazmat.primitives.hashes import SHA256

        self.decode = ec.EllipticCurvePublicKey.from_encoded_point
        self.encode_signature = utils.encode_dss_signature
        self.invalid = InvalidSignature
        self.curve = ec.SECP256R1()
        self.algorithm = ec.ECDSA(utils.Prehashed(SHA256()))


cdef Library LIBRARY = None


cdef Library loaded():
    global LIBRARY
    if LIBRARY is None:
        LIBRARY = Library()
    return LIBRARY


cdef Verdict verify(const uint8_t* operands) noexcept with gil:
    try:
        return check(operands[:INPUT_SIZE])
    except BaseException:
        return HOST_FAILED


cdef Verdict check(bytes operands) except *:
    cdef Library library = loaded()
    r = int.from_bytes(operands[32:64], "big")
    s = int.from_bytes(operands[64:96], "big")
    try:
        key = library.decode(library.curve, b"\x04" + operands[96:])
        key.verify(library.encode_signature(r, s), operands[:32], library.algorithm)
    except (ValueError, library.invalid):
        return REFUSED
    return VERIFIED


cdef inline bint is_scalar(const uint8_t* operand) noexcept nogil:
    cdef Word found
    word_load(&found, operand)
    return not word_is_zero(&found) and word_lt(&found, &ORDER)


# Whether x and y are below the prime and on the curve. False for the point at infinity (0, 0).
cdef bint is_point(const uint8_t* operands) noexcept nogil:
    cdef Word x, y, square, sum
    word_load(&x, operands)
    word_load(&y, operands + 32)
    if not (word_lt(&x, &PRIME) and word_lt(&y, &PRIME)):
        return False
    word_mulmod(&square, &y, &y, &PRIME)
    word_mulmod(&sum, &x, &x, &PRIME)
    word_addmod(&sum, &sum, &A, &PRIME)
    word_mulmod(&sum, &sum, &x, &PRIME)
    word_addmod(&sum, &sum, &B, &PRIME)
    return word_eq(&square, &sum)


# Returns the word 1 for a valid signature, else an empty output. Invalid input never fails the
# call.
cdef PrecompileOutcome p256_verify(
    const Schedule* schedule, const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil:
    cdef Verdict verdict
    if not charge(gas, <uint64_t>schedule.p256_verify_cost):
        return PRECOMPILE_OUT_OF_GAS
    output.size = 0
    # Rejects input of an invalid form without calling the library.
    if size != INPUT_SIZE or not (is_scalar(data + 32) and is_scalar(data + 64)):
        return PRECOMPILE_OK
    if not is_point(data + 96):
        return PRECOMPILE_OK
    verdict = verify(data)
    if verdict == REFUSED:
        return PRECOMPILE_OK
    if verdict == HOST_FAILED or not size_output(output, 32):
        return PRECOMPILE_NO_MEMORY
    memset(output.bytes, 0, 31)
    output.bytes[31] = 1
    return PRECOMPILE_OK
