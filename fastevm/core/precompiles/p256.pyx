"""Verifies signatures on P-256 with `cryptography`, precompile 0x100 (EIP-7951)."""

from libc.stdint cimport uint64_t
from libc.string cimport memset

from fastevm.core.precompiles.common cimport charge, size_output
from fastevm.core.precompiles.registry cimport (
    PRECOMPILE_NO_MEMORY, PRECOMPILE_OK, PRECOMPILE_OUT_OF_GAS, PrecompileOutcome,
)


cdef enum:
    INPUT_SIZE = 160          # hash, r, s, x, y, a word each

cdef enum Verdict:
    REFUSED = 0
    VERIFIED = 1
    HOST_FAILED = 2           # out of memory or interrupted: no result

cdef object ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551


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
    r = int.from_bytes(operands[32:64], "big")
    s = int.from_bytes(operands[64:96], "big")
    if not (0 < r < ORDER and 0 < s < ORDER):
        return REFUSED
    cdef Library library = loaded()
    try:
        # Rejects coordinates that are not below the prime and points off the curve.
        key = library.decode(library.curve, b"\x04" + operands[96:])
        key.verify(library.encode_signature(r, s), operands[:32], library.algorithm)
    except (ValueError, library.invalid):
        return REFUSED
    return VERIFIED


# The word 1 for a valid signature, else no output: invalid input never fails the call.
cdef PrecompileOutcome p256_verify(
    const Schedule* schedule, const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil:
    cdef Verdict verdict
    if not charge(gas, <uint64_t>schedule.p256_verify_cost):
        return PRECOMPILE_OUT_OF_GAS
    output.size = 0
    if size != INPUT_SIZE:
        return PRECOMPILE_OK
    verdict = verify(data)
    if verdict == REFUSED:
        return PRECOMPILE_OK
    if verdict == HOST_FAILED or not size_output(output, 32):
        return PRECOMPILE_NO_MEMORY
    memset(output.bytes, 0, 31)
    output.bytes[31] = 1
    return PRECOMPILE_OK
