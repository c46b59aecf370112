"""Python access to C functions of the primitives that have no Python function."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.primitives.arena cimport (
    Arena, arena_alloc, arena_free, arena_new, arena_reset,
)
from fastevm.core.primitives.buffer cimport Buffer, buffer_append, buffer_free, buffer_reserve
from fastevm.core.primitives.guarded_memory cimport map_guarded, unmap_guarded
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.hex cimport (
    hex_append, hex_append_quantity, hex_append_quantity_word,
)
from fastevm.core.primitives.intrinsics cimport (
    atomic_decrement, atomic_increment, atomic_load, div128by64, process_seed,
)
from fastevm.rpc_types.text.json_writer cimport (
    JsonText, json_bool, json_hex, json_hex_word, json_number, json_put, json_quantity,
    json_string, json_take,
)
from fastevm.core.primitives.keccak cimport keccak256, keccak256_32, keccak256_64
from fastevm.core.primitives.rlp cimport (
    RlpCursor, RlpItem, rlp_append_bytes, rlp_append_list_header, rlp_append_uint64,
    rlp_append_word, rlp_bytes_size, rlp_count, rlp_done, rlp_header_size, rlp_list_begin,
    rlp_list_end, rlp_next, rlp_next_bytes, rlp_next_fixed, rlp_next_list, rlp_next_raw,
    rlp_next_uint64, rlp_next_word, rlp_open, rlp_uint64_size,
)
from fastevm.core.primitives.table cimport (
    hash_address, hash_hash, hash_word, table_capacity, table_is_full,
)
from fastevm.core.primitives.word cimport (
    Word, word_bits, word_from_address, word_from_int, word_load, word_load_n, word_store,
    word_to_address, word_to_int,
)

from typing import Any


cdef bytes taken(Buffer* buffer, bint complete):
    try:
        if not complete:
            raise MemoryError
        return PyBytes_FromStringAndSize(<char*>buffer.bytes, <Py_ssize_t>buffer.size)
    finally:
        buffer_free(buffer)


cdef Address to_address(bytes data) except *:
    cdef Address address
    if len(data) != sizeof(Address):
        raise ValueError("an address is 20 bytes")
    memcpy(address.b, <const uint8_t*>data, sizeof(Address))
    return address


# --- memory ---

def write_guarded(size_t size, Py_ssize_t at) -> int:
    """Maps guarded memory, writes a byte at a position (possibly outside) and reads it again."""
    cdef uint8_t* memory = <uint8_t*>map_guarded(size)
    cdef int found
    if memory == NULL:
        raise MemoryError
    memory[at] = 7
    found = memory[at]
    unmap_guarded(memory, size)
    return found


# --- intrinsics ---

def div128(high: int, low: int, divisor: int) -> tuple[int, int]:
    """Returns quotient and remainder of ``high * 2**64 + low``; high must be below the divisor."""
    cdef uint64_t rest = 0
    cdef uint64_t quotient = div128by64(high, low, divisor, &rest)
    return quotient, rest


def count_atomically(start: int, ups: int, downs: int) -> int:
    """Returns a counter after this many increments and decrements."""
    cdef int64_t counter = start
    cdef int64_t _i
    for _i in range(<int64_t>ups):
        atomic_increment(&counter)
    for _i in range(<int64_t>downs):
        atomic_decrement(&counter)
    return atomic_load(&counter)


def seed() -> int:
    """Returns the seed of this process."""
    return process_seed()


# --- words ---

def bits_of(number: int) -> int:
    """Returns the result of ``word_bits``."""
    cdef Word word
    word_from_int(&word, number)
    return word_bits(&word)


def load_bytes(data: bytes) -> int:
    """Returns ``word_load`` of 32 bytes, or ``word_load_n`` of fewer, from a copy of exact size."""
    cdef Word word
    cdef const uint8_t* p = data
    if len(data) > 32:
        raise ValueError("a word is at most 32 bytes")
    if len(data) == 32:
        word_load(&word, p)
        full = word_to_int(&word)
        word_load_n(&word, p, 32)
        if word_to_int(&word) != full:
            raise AssertionError("word_load and word_load_n disagree")
    else:
        word_load_n(&word, p, <size_t>len(data))
    return word_to_int(&word)


def store_bytes(number: int) -> bytes:
    """Returns the result of ``word_store``."""
    cdef Word word
    cdef uint8_t raw[32]
    word_from_int(&word, number)
    word_store(raw, &word)
    return raw[:32]


def address_to_int(data: bytes) -> int:
    """Returns the result of ``word_from_address``."""
    cdef Address address = to_address(data)
    cdef Word word
    word_from_address(&word, &address)
    return word_to_int(&word)


def int_to_address(number: int) -> bytes:
    """Returns the result of ``word_to_address``."""
    cdef Address address
    cdef Word word
    word_from_int(&word, number)
    word_to_address(&address, &word)
    return address.b[:20]


# --- buffers and arenas ---

def join(parts: list[bytes], *, reserve: int = 0) -> bytes:
    """Appends the parts to a buffer for which ``reserve`` bytes were reserved before."""
    cdef Buffer buffer = Buffer(NULL, 0, 0)
    cdef bint complete = buffer_reserve(&buffer, reserve)
    cdef bytes part
    for part in parts:
        complete = complete and buffer_append(&buffer, <const uint8_t*>part, <size_t>len(part))
        if buffer.size > buffer.capacity:
            raise AssertionError("the buffer is longer than its room")
    return taken(&buffer, complete)


cdef class ArenaObject:
    """An arena; allocations are identified by address."""

    cdef Arena* arena
    cdef dict sizes  # address -> size of the allocation, since the last reset

    def __cinit__(self, chunk_size: int) -> None:
        self.sizes = {}
        self.arena = arena_new(chunk_size)
        if self.arena == NULL:
            raise MemoryError

    def __dealloc__(self) -> None:
        arena_free(self.arena)

    def alloc(self, content: bytes) -> int:
        """Allocates memory with this content; returns its address."""
        cdef void* p = arena_alloc(self.arena, <size_t>len(content))
        if p == NULL:
            raise MemoryError
        memcpy(p, <const uint8_t*>content, <size_t>len(content))
        self.sizes[<size_t>p] = max(len(content), self.sizes.get(<size_t>p, 0))
        return <size_t>p

    def alloc_size(self, size: int) -> bool:
        """Returns whether an allocation of this size succeeds."""
        return arena_alloc(self.arena, size) != NULL

    def read(self, address: int, size: int) -> bytes:
        """Returns the content of an allocation. Raises ValueError if it is smaller."""
        if not 0 <= size <= self.sizes.get(address, -1):
            raise ValueError(f"no {size} bytes were allocated at {address:#x}")
        return (<const char*><size_t>address)[:size]

    def reset(self) -> None:
        """Releases all allocations."""
        self.sizes.clear()
        arena_reset(self.arena)

    @property
    def held(self) -> int:
        """Returns the memory of all chunks in bytes, used or not."""
        return self.arena.bytes


# --- tables ---

def table_hashes(address: bytes, number: int, seed: int) -> dict[str, int]:
    """Returns the results of each hash function of table.pxd on the same values."""
    cdef Address a = to_address(address)
    cdef Word word
    cdef Hash big_endian
    word_from_int(&word, number)
    word_store(big_endian.b, &word)
    return {
        "address": hash_address(&a, seed),
        "word": hash_word(&word, seed),
        "hash": hash_hash(&big_endian, seed),
    }


def capacity_for(count: int) -> int:
    """Returns the result of ``table_capacity``."""
    return table_capacity(count)


def is_full(count: int, mask: int) -> bool:
    """Returns the result of ``table_is_full``."""
    return table_is_full(count, mask)


# --- keccak ---

def keccak_in_place(data: bytes) -> bytes:
    """Returns the digest from the fast path for 32 or 64 bytes, written over the input."""
    cdef uint8_t raw[64]
    if len(data) not in (32, 64):
        raise ValueError("the fast paths take 32 or 64 bytes")
    memcpy(raw, <const uint8_t*>data, <size_t>len(data))
    if len(data) == 32:
        keccak256_32(raw, raw)
    else:
        keccak256_64(raw, raw)
    return raw[:32]


def keccak_of_nothing() -> bytes:
    """Returns the digest of zero bytes at NULL."""
    cdef uint8_t raw[32]
    keccak256(raw, NULL, 0)
    return raw[:32]


# --- hex ---

def hex_appended(data: bytes, number: int) -> bytes:
    """Appends hex of the data and the quantity (also by the 64-bit path if it fits)."""
    cdef Buffer buffer = Buffer(NULL, 0, 0)
    cdef Word word
    cdef bint complete
    word_from_int(&word, number)
    complete = hex_append(&buffer, <const uint8_t*>data, <size_t>len(data))
    complete = complete and hex_append_quantity_word(&buffer, &word)
    complete = complete and hex_append_quantity(&buffer, word.d[0])
    return taken(&buffer, complete)


# --- JSON ---

def json_appended(values: list[Any], *, starve: bool = False) -> bytes:
    """Encodes an array of the values; each number as decimal, quantity and word.

    ``starve`` requests an allocation that must fail.
    """
    cdef JsonText t = JsonText(Buffer(NULL, 0, 0), False)
    cdef Word word
    cdef bytes raw
    cdef uint64_t number
    json_put(&t, b"[")
    for value in values:
        if t.out.size > 1:
            json_put(&t, b",")
        if isinstance(value, bool):
            json_bool(&t, value)
        elif isinstance(value, int):
            number = value
            word_from_int(&word, value)
            json_number(&t, number)
            json_put(&t, b",")
            json_quantity(&t, number)
            json_put(&t, b",")
            json_hex_word(&t, &word)
        else:
            raw = value if isinstance(value, bytes) else value.encode()
            if isinstance(value, bytes):
                json_hex(&t, <const uint8_t*>raw, <size_t>len(raw))
            else:
                json_string(&t, <const uint8_t*>raw, <size_t>len(raw))
    if starve:
        json_hex(&t, NULL, <size_t>-1)
    json_put(&t, b"]")
    return json_take(&t)


# --- RLP ---

def rlp_read(data: bytes, kinds: str) -> list[Any] | None:
    """Decodes a list: one letter of ``kinds`` per item; None if the decoder rejects it.

    u: uint64, w: word, a: exactly 20 bytes, b: bytes, r: the raw encoding, l: the number of items
    of a nested list, n: the number of items found by iterating a nested list.
    """
    cdef RlpCursor cursor
    cdef const uint8_t* p = data
    cdef list values = []
    memset(&cursor, 0, sizeof(cursor))
    if not rlp_open(p, <size_t>len(data), &cursor):
        return None
    for kind in kinds:
        value = read_one(&cursor, kind)
        if value is None:
            return None
        values.append(value)
    return values if rlp_done(&cursor) else None


cdef object read_one(RlpCursor* cursor, str kind):
    cdef RlpCursor inner
    cdef RlpItem item
    cdef Word word
    cdef uint64_t small = 0
    cdef uint8_t fixed[20]
    cdef const uint8_t* start = NULL
    cdef size_t size = 0
    memset(&inner, 0, sizeof(inner))
    memset(&item, 0, sizeof(item))
    if kind == "u":
        return small if rlp_next_uint64(cursor, &small) else None
    if kind == "w":
        return word_to_int(&word) if rlp_next_word(cursor, &word) else None
    if kind == "a":
        return fixed[:20] if rlp_next_fixed(cursor, fixed, 20) else None
    if kind == "b":
        return start[:size] if rlp_next_bytes(cursor, &start, &size) else None
    if kind == "r":
        return start[:size] if rlp_next_raw(cursor, &item, &start, &size) else None
    if kind == "l":
        return rlp_count(&item) if rlp_next(cursor, &item) else None
    if not rlp_next_list(cursor, &inner):
        return None
    while rlp_next(&inner, &item):
        small += 1
    return small if rlp_done(&inner) else None


def rlp_written(numbers: list[int], strings: list[bytes]) -> tuple[bytes, int]:
    """Encodes a list of the numbers and a list of the strings; also returns the computed size."""
    cdef Buffer buffer = Buffer(NULL, 0, 0)
    cdef Word word
    cdef bytes text
    cdef size_t mark = rlp_list_begin(&buffer), inner = 0, outer = 0
    cdef bint ok = True
    for number in numbers:
        word_from_int(&word, number)
        if number >> 64 == 0:
            outer += rlp_uint64_size(word.d[0])
            ok = ok and rlp_append_uint64(&buffer, word.d[0])
        else:
            outer += 1 + <size_t>(number.bit_length() + 7) // 8
            ok = ok and rlp_append_word(&buffer, &word)
    for text in strings:
        inner += rlp_bytes_size(<const uint8_t*>text, <size_t>len(text))
    ok = ok and rlp_append_list_header(&buffer, inner)
    for text in strings:
        ok = ok and rlp_append_bytes(&buffer, <const uint8_t*>text, <size_t>len(text))
    outer += rlp_header_size(inner) + inner
    ok = ok and rlp_list_end(&buffer, mark)
    return taken(&buffer, ok), rlp_header_size(outer) + outer
