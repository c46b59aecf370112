# The call, charged storage, results and errors, for the methods of all Arbitrum precompiles.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fastevm.core.native.arbitrum.storage cimport Space
from fastevm.core.native.call cimport NativeCall
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word
from fastevm.core.state.account cimport Account


cdef enum:
    SLOT_READ = 800           # gas
    SLOT_WRITE = 20_000       # gas
    SLOT_CLEAR = 5_000        # gas of a write of zero
    COPY_WORD = 3             # gas for each word of arguments and results


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
    Account* state            # the account with the storage of ArbOS; NULL until it is read
    int version               # version of ArbOS
    uint64_t key              # `Method.key`, for bodies that several rows share
    bint is_free              # a call of the chain's owner, which pays no gas


# All functions that return bint return False when the call must end (see native/call.pxd).
ctypedef bint (*Body)(Context* c, const Argument* a) noexcept nogil


# A row of the table of methods. A method has a body, or returns the value of a slot.
cdef struct Method:
    uint32_t contract         # 0 = an empty row
    uint32_t selector
    int first                 # the first version of ArbOS with the method
    int last                  # the last version of ArbOS with the method; 0 = none
    MethodKind kind
    char codes[8]             # argument types: a address, u uint256, l uint64, w bytes32, y bytes
    Body run
    const Space* space        # the space of the slot
    uint64_t key              # the key of the slot in its space, or a parameter of the body
    const char* refused       # without body and slot: the text of the refusal


# --- the table. Signatures are those of the ABI ---
cdef int add(
    uint32_t contract, int first, MethodKind kind, bytes signature, Body run, int last=*,
    uint64_t key=*,
) except -1
# Like `add`, for a method whose arguments are not decoded.
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
# A set of addresses is a space with the size at key 0 and the members from key 1 on.
cdef bint is_member(Context* c, const Space* set, const Word* address, bint* out) noexcept nogil
cdef bint give_members(Context* c, const Space* set) noexcept nogil

# --- results: the output of the call ---
cdef bint give(Context* c, const Word* word) noexcept nogil
cdef bint give_number(Context* c, uint64_t number) noexcept nogil
cdef bint give_address(Context* c, const Address* address) noexcept nogil
# Returns bytes as the only result: offset, length and content.
cdef bint give_bytes(Context* c, const uint8_t* content, size_t size) noexcept nogil
cdef bint pad(Context* c, size_t size) noexcept nogil

# --- errors. All return False ---
# Fails and consumes all gas.
cdef bint burn_all(Context* c) noexcept nogil
# Reverts without data. Since version 11, the remaining gas is returned.
cdef bint fail(Context* c) noexcept nogil
# Revert with a Solidity error: begin with the selector, append the arguments to the output, end.
cdef bint begin_error(Context* c, uint32_t selector) noexcept nogil
cdef bint end_error(Context* c) noexcept nogil
cdef bint fail_named(Context* c, uint32_t selector) noexcept nogil
