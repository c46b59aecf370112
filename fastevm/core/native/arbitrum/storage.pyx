"""The storage of ArbOS: spaces of one account, and the slots in them.

A slot is keccak(key of the space, key[:31])[:31] and the last byte of the key, so 256 consecutive
keys share a page. Source: Nitro, ``arbos/storage/storage.go``.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.primitives.keccak cimport keccak256
from fastevm.core.primitives.word cimport Word, word_load, word_set, word_store


cdef enum:
    RING = 256                # number of L1 block hashes that ArbOS keeps


cdef void hash_page(uint8_t* out, const Space* space, const uint8_t* key) noexcept nogil:
    cdef uint8_t data[63]
    memcpy(data, space.key, space.size)
    memcpy(data + space.size, key, 31)
    keccak256(out, data, space.size + 31)


cdef void child_space(
    Space* out, const Space* parent, const uint8_t* id, size_t size
) noexcept nogil:
    cdef uint8_t data[64]     # ids have at most 32 bytes
    cdef size_t start = parent.size  # read first, because `parent` may be the result
    memcpy(data, parent.key, start)
    if size != 0:
        memcpy(data + start, id, size)
    out.size = 32
    out.has_page = False
    keccak256(out.key, data, start + size)


cdef void slot_of(Word* out, const Space* space, const Word* key) noexcept nogil:
    cdef uint8_t bytes[32]
    cdef uint8_t last
    word_store(bytes, key)
    last = bytes[31]
    if space.has_page and key.d[0] < 256 and (key.d[1] | key.d[2] | key.d[3]) == 0:
        memcpy(bytes, space.page, 31)
    else:
        hash_page(bytes, space, bytes)
        bytes[31] = last
    word_load(out, bytes)


cdef void slot_at(Word* out, const Space* space, uint64_t key) noexcept nogil:
    word_set(out, key)
    slot_of(out, space, out)


cdef void l1_hash_slot(Word* out, uint64_t number) noexcept nogil:
    slot_at(out, &L1_BLOCKS, 1 + number % RING)


def slot(ids: tuple[bytes, ...], key: int) -> int:
    """Returns the slot of ``key`` in the space with this path of ids from the root."""
    cdef Space space
    cdef Word word
    cdef uint8_t out[32]
    cdef bytes content
    memset(&space, 0, sizeof(space))
    for id in ids:
        content = id
        if len(content) > 32:
            raise ValueError("an id has at most 32 bytes")
        child_space(&space, &space, <const uint8_t*><const char*>content, len(content))
    content = key.to_bytes(32, "big")
    word_load(&word, <const uint8_t*><const char*>content)
    slot_of(&word, &space, &word)
    word_store(out, &word)
    return int.from_bytes((<char*>out)[:32], "big")


cdef void make_space(Space* out, const Space* parent, bytes id) noexcept:
    cdef uint8_t zeros[32]
    memset(zeros, 0, sizeof(zeros))
    memset(out, 0, sizeof(Space))
    if parent != NULL:
        child_space(out, parent, <const uint8_t*><const char*>id, len(id))
    hash_page(out.page, out, zeros)
    out.has_page = True


STATE_ADDRESS = bytes.fromhex("a4b05fffffffffffffffffffffffffffffffffff")
ARBITRUM_PRECOMPILES = frozenset([
    number.to_bytes(20, "big") for number in (*range(0x64, 0x75), 0xff, 0xa4b05) if number != 0x6a
])

memcpy(ARBOS_STATE.b, <const char*><bytes>STATE_ADDRESS, 20)
make_space(&ROOT, NULL, b"")
make_space(&L1_PRICING, &ROOT, b"\x00")
make_space(&POSTERS, &L1_PRICING, b"\x00")
make_space(&POSTER_SET, &POSTERS, b"\x00")
make_space(&POSTER_INFO, &POSTERS, b"\x01")
make_space(&L2_PRICING, &ROOT, b"\x01")
make_space(&CONSTRAINTS, &L2_PRICING, b"\x00")
make_space(&MULTI_GAS_CONSTRAINTS, &L2_PRICING, b"\x01")
make_space(&MULTI_GAS_FEES, &L2_PRICING, b"\x02")
make_space(&RETRYABLES, &ROOT, b"\x02")
make_space(&ADDRESS_TABLE, &ROOT, b"\x03")
make_space(&ADDRESS_INDEX, &ADDRESS_TABLE, b"")
make_space(&OWNERS, &ROOT, b"\x04")
make_space(&SENDS, &ROOT, b"\x05")
make_space(&L1_BLOCKS, &ROOT, b"\x06")
cdef Space programs
make_space(&programs, &ROOT, b"\x08")
make_space(&STYLUS_PARAMETERS, &programs, b"\x00")
make_space(&PROGRAMS, &programs, b"\x01")
make_space(&CACHE_MANAGERS, &programs, b"\x04")
make_space(&ACTIVATION_GAS, &programs, b"\x05")
make_space(&FEATURES, &ROOT, b"\x09")
make_space(&NATIVE_TOKEN_OWNERS, &ROOT, b"\x0a")
make_space(&FILTERERS, &ROOT, b"\x0b")
