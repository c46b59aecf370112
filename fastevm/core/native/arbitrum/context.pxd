# What the methods of Arbitrum's precompiles share: the call, charged storage, results and errors.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fastevm.core.native.arbitrum.storage cimport Space
from fastevm.core.native.call cimport NativeCall
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word
from fastevm.core.state.account cimport Account


cdef enum:
    SLOT_READ = 800           # gas
    SLOT_WRITE = 20_000
    SLOT_CLEAR = 5_000        # a write of zero
    COPY_WORD = 3             # each word of arguments and results


cdef enum MethodKind:
    PURE = 0
    VIEW = 1
    WRITE = 2
    PAYABLE = 3


cdef struct Argument:
    Word word                 # a value
    const uint8_t* bytes      # content of bytes
    size_t size


# A call of a method.
cdef struct Context:
    NativeCall* call
    Account* state            # of ArbOS; NULL until it is read
    int version               # of ArbOS
    uint64_t key              # of the method's row, for bodies that several rows share
    bint is_free              # an owner's call


# All functions that return bint return False when the call must end (see native/call.pxd).
ctypedef bint (*Body)(Context* c, const Argument* a) noexcept nogil


# A row of the table of methods: either a body or a slot that is the result.
cdef struct Method:
    uint32_t contract         # 0 = an empty row
    uint32_t selector
    int first                 # version of ArbOS
    int last                  # 0 = no last version
    MethodKind kind
    char codes[8]             # of the arguments: a address, u uint256, l uint64, w bytes32, y bytes
    Body run
    const Space* space        # of the slot
    uint64_t key              # of the slot, or for the body
    const char* refused       # with neither body nor slot: what a refusal says


# --- the table. Signatures are those of the ABI ---
cdef int add(
    uint32_t contract, int first, MethodKind kind, bytes signature, Body run, int last=*,
    uint64_t key=*,
) except -1
# The arguments are not decoded.
cdef int add_unread(
    uint32_t contract, int first, MethodKind kind, bytes signature, Body run
) except -1
cdef int add_slot(
    uint32_t contract, int first, bytes signature, const Space* space, uint64_t key
) except -1
cdef int add_refused(
    uint32_t contract, int first, MethodKind kind, bytes signature, str reason, int last=*
) except -1
cdef const Method* find_method(uint32_t contract, uint32_t selector, int version) noexcept nogil

# --- charges and storage ---
cdef bint charge(Context* c, int64_t gas) noexcept nogil
cdef bint charge_hash(Context* c, size_t size) noexcept nogil
cdef bint load(Context* c, const Word* slot, Word* out) noexcept nogil
cdef bint load_at(Context* c, const Space* space, uint64_t key, Word* out) noexcept nogil
cdef bint load_number(Context* c, const Space* space, uint64_t key, uint64_t* out) noexcept nogil
cdef bint load_free(Context* c, const Space* space, uint64_t key, Word* out) noexcept nogil
cdef bint store(Context* c, const Word* slot, const Word* value) noexcept nogil
cdef bint store_at(Context* c, const Space* space, uint64_t key, const Word* value) noexcept nogil
# A set of addresses: its size is at 0, its members from 1 on.
cdef bint is_member(Context* c, const Space* set, const Word* address, bint* out) noexcept nogil
cdef bint give_members(Context* c, const Space* set) noexcept nogil

# --- results: the output of the call ---
cdef bint give(Context* c, const Word* word) noexcept nogil
cdef bint give_number(Context* c, uint64_t number) noexcept nogil
cdef bint give_address(Context* c, const Address* address) noexcept nogil
# The offset, the length and the content of bytes as the only result.
cdef bint give_bytes(Context* c, const uint8_t* content, size_t size) noexcept nogil
cdef bint pad(Context* c, size_t size) noexcept nogil

# --- errors. All return False ---
# A failure that takes all gas.
cdef bint burn_all(Context* c) noexcept nogil
# An error without data: it keeps the gas since version 11.
cdef bint fail(Context* c) noexcept nogil
# An error of Solidity; its arguments are in the output after the selector.
cdef bint begin_error(Context* c, uint32_t selector) noexcept nogil
cdef bint end_error(Context* c) noexcept nogil
cdef bint fail_named(Context* c, uint32_t selector) noexcept nogil
