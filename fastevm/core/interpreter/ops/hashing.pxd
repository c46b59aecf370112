# Hashing of memory: KECCAK256.
from libc.stdint cimport int64_t, uint8_t

from fastevm.core.interpreter.machine cimport Frame
from fastevm.core.interpreter.memory cimport memory_span
from fastevm.core.primitives.keccak cimport keccak256
from fastevm.core.primitives.keccak_cache cimport cached_keccak256_32, cached_keccak256_64
from fastevm.core.primitives.word cimport Word, word_load
from fastevm.core.spec.constants cimport KECCAK_WORD_COST
from fastevm.core.state.code cimport EMPTY_CODE_HASH


cdef inline int64_t op_keccak256(Frame* f, Word* sp, int64_t gas) noexcept nogil:
    cdef uint8_t digest[32]
    cdef size_t size = sp[1].d[0]
    gas = memory_span(f, &sp[0], &sp[1], gas)
    if gas < 0:
        return gas
    gas -= <int64_t>((size + 31) >> 5) * KECCAK_WORD_COST
    if gas < 0:
        return gas
    if size == 64:
        cached_keccak256_64(&f.machine.keccak_cache, &sp[1], f.memory + sp[0].d[0])
    elif size == 32:
        cached_keccak256_32(&f.machine.keccak_cache, &sp[1], f.memory + sp[0].d[0])
    elif size == 0:
        word_load(&sp[1], EMPTY_CODE_HASH.b)  # the hash of no bytes
    else:
        keccak256(digest, f.memory + sp[0].d[0], size)
        word_load(&sp[1], digest)
    return gas
