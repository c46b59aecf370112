"""Keccak-256 as Ethereum uses it: a sponge in C with variants for different processors."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc

from fastevm.core.primitives.processor import IN_USE, SIMD_ALLOWED, replace


cdef extern from "fastevm/core/primitives/keccak.h" nogil:
    bint fe_keccak_choose(bint allow)
    void fe_keccak256(uint8_t* out, const uint8_t* data, size_t size)
    void fe_keccak256_joined(
        uint8_t* out, const uint8_t* head, size_t head_size, const uint8_t* data, size_t size
    )
    void fe_keccak256_lanes(uint8_t* out, const uint8_t* data, int lanes)


cdef extern from "fastevm/core/primitives/keccak_many.h" nogil:
    int fe_keccak_lanes
    void fe_keccak_many_choose(int most)
    void fe_keccak256_many(const KeccakJob* jobs, size_t count)


cdef enum:
    MOST_LANES = 8


cdef void keccak256(uint8_t* out, const uint8_t* data, size_t size) noexcept nogil:
    fe_keccak256(out, data, size)


cdef void keccak256_joined(
    uint8_t* out, const uint8_t* head, size_t head_size, const uint8_t* data, size_t size
) noexcept nogil:
    fe_keccak256_joined(out, head, head_size, data, size)


cdef void keccak256_32(uint8_t* out, const uint8_t* data) noexcept nogil:
    fe_keccak256_lanes(out, data, 4)


cdef void keccak256_64(uint8_t* out, const uint8_t* data) noexcept nogil:
    fe_keccak256_lanes(out, data, 8)


cdef void keccak256_many(const KeccakJob* jobs, size_t count) noexcept nogil:
    fe_keccak256_many(jobs, count)


def keccak256_all(messages: list[bytes]) -> list[bytes]:
    """Returns the digests of many messages, computed in vector lanes if the processor has them."""
    cdef size_t count = len(messages)
    cdef size_t i = 0
    cdef bytes message
    cdef bytearray digests = bytearray(32 * count)
    cdef uint8_t* out = <uint8_t*>PyByteArray_AS_STRING(digests)
    cdef KeccakJob* jobs = <KeccakJob*>PyMem_RawMalloc((count + 1) * sizeof(KeccakJob))
    if jobs == NULL:
        raise MemoryError
    try:
        for message in messages:
            if message is None or i == count:
                raise TypeError("messages are a list of bytes that stays as it is")
            jobs[i].data = <const uint8_t*>PyBytes_AS_STRING(message)
            jobs[i].size = <size_t>PyBytes_GET_SIZE(message)
            jobs[i].out = out + 32 * i
            i += 1
        keccak256_many(jobs, count)
    finally:
        PyMem_RawFree(jobs)
    return [bytes(digests[at : at + 32]) for at in range(0, 32 * count, 32)]


def use_lanes(most: int = MOST_LANES) -> int:
    """Limits `keccak256_all` to ``most`` messages at a time. For tests.

    Returns the number of lanes; 0 means that messages are hashed one after another. The default is
    the maximum of the processor.
    """
    fe_keccak_many_choose(most)
    return fe_keccak_lanes


def _keccak256(data: bytes | bytearray | memoryview) -> bytes:
    """Returns the 32-byte Keccak-256 digest of a bytes-like value (Yellow Paper, 3: KEC)."""
    cdef uint8_t digest[32]
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    fe_keccak256(digest, <const uint8_t*>view.buf, <size_t>view.len)
    PyBuffer_Release(&view)
    return digest[:32]


# The C function and the Python function have the same name. Cython only allows this through an
# assignment at module level.
_keccak256.__name__ = _keccak256.__qualname__ = "keccak256"
globals()["keccak256"] = _keccak256


# A message of two blocks and its digest.
cdef bytes KNOWN_MESSAGE = bytes(range(256)) + b"fastevm"
cdef bytes KNOWN_DIGEST = bytes.fromhex(
    "d3c447f344b5fd8dab6b796bb0284dee8686ae44dfd1168ea0b24977125aea53"
)


def choose_code() -> None:
    """Selects the fastest variant that the processor supports and that passes a self-test."""
    IN_USE["keccak256"] = "bmi2" if fe_keccak_choose(SIMD_ALLOWED) else "portable"
    if _keccak256(KNOWN_MESSAGE) != KNOWN_DIGEST:
        fe_keccak_choose(False)
        replace("keccak256", IN_USE["keccak256"], "portable")
    lanes = use_lanes(MOST_LANES if SIMD_ALLOWED else 0)
    IN_USE["keccak256 of many"] = f"{lanes} lanes" if lanes else "one after the other"
    messages = [KNOWN_MESSAGE[:29 * i] for i in range(10)]
    if keccak256_all(messages) != [_keccak256(message) for message in messages]:
        use_lanes(0)
        replace("keccak256 of many", f"{lanes} lanes", "one after the other")


choose_code()
