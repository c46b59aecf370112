# The call, storage fields, strings and errors, for the functions of all of Base's native contracts.
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from fastevm.core.native.base.abi cimport Argument, Slice
from fastevm.core.native.call cimport NativeCall
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word
from fastevm.core.state.account cimport Account


cdef enum Version:
    BERYL = 1
    COBALT = 2
    DENIM = 3


# A call of a function. In calls that the factory or an announcement makes inside another call,
# `account` is the token and `caller` the factory or the announcer.
cdef struct Context:
    NativeCall* call
    int version
    uint32_t contract         # BaseContract of `account`
    Account* account
    Account* policies         # the PolicyRegistry; NULL until its storage is read
    Address caller
    bint is_privileged        # a call by the factory: roles and transfer policies do not apply
    bint is_undispatched      # the call ended because its selector or its arguments are invalid
    bint has_panicked         # the call ended with a panic


# All functions that return bint return False when the call must end (see native/call.pxd).
ctypedef bint (*Function)(Context* c, const Argument* arguments) noexcept nogil


# --- errors: revert with a selector of names.pxd and its arguments. All return False ---
cdef bint fail(Context* c, uint32_t error) noexcept nogil
cdef bint fail_word(Context* c, uint32_t error, const Word* a) noexcept nogil
cdef bint fail_words(Context* c, uint32_t error, const Word* a, const Word* b) noexcept nogil
cdef bint fail_number(Context* c, uint32_t error, uint64_t number) noexcept nogil
cdef bint fail_address(Context* c, uint32_t error, const Address* address) noexcept nogil
cdef bint fail_amounts(
    Context* c, uint32_t error, const Address* address, const Word* a, const Word* b
) noexcept nogil
cdef bint fail_bytes(Context* c, uint32_t error, Slice content) noexcept nogil
# Reverts with Panic(0x11), because an addition, subtraction or multiplication overflows.
cdef bint overflow(Context* c) noexcept nogil

# --- slots ---
cdef void field(Word* slot, const Word* root, int number) noexcept nogil
# Replaces `slot`, the slot of a mapping(key => ...), by the slot of the element.
cdef void element(Context* c, Word* slot, const Word* key) noexcept nogil
cdef void element_of_address(Context* c, Word* slot, const Address* key) noexcept nogil
# Like `element`, for a mapping(string => ...).
cdef bint element_of_text(Context* c, Word* slot, Slice key) noexcept nogil

# --- storage of `account` ---
cdef bint load(Context* c, const Word* slot, Word* out) noexcept nogil
cdef bint store(Context* c, const Word* slot, const Word* value) noexcept nogil
cdef bint store_number(Context* c, const Word* slot, uint64_t value) noexcept nogil
# Replaces a 64-bit lane (0 to 3) of a slot with several fields. Charges SLOAD and SSTORE.
cdef bint store_lane(Context* c, const Word* slot, int lane, uint64_t value) noexcept nogil
# Loads a string and appends it to the output; stores a string.
cdef bint load_text(Context* c, const Word* slot) noexcept nogil
cdef bint store_text(Context* c, const Word* slot, Slice text) noexcept nogil
cdef bint delete_text(Context* c, const Word* slot) noexcept nogil
# Sets words from `first` on of the dynamic part of `slot` to zero, up to `end`.
cdef bint clear_words(Context* c, const Word* slot, uint64_t first, uint64_t end) noexcept nogil
# Returns the slot of the first word of a long string's or an array's content.
cdef void first_word(Context* c, Word* out, const Word* slot) noexcept nogil

# --- the code that marks a contract as present: one byte, 0xef ---
cdef bint plant(Context* c, Account* account) noexcept nogil

# --- results: the output of the call ---
cdef bint give_word(Context* c, const Word* word) noexcept nogil
cdef bint give_number(Context* c, uint64_t number) noexcept nogil
cdef bint give_address(Context* c, const Address* address) noexcept nogil
# Returns the string that is stored at the slot.
cdef bint give_text(Context* c, const Word* slot) noexcept nogil
# Returns the word that is stored in field `number` of a structure.
cdef bint give_field(Context* c, const Word* root, int number) noexcept nogil

# --- logs of `account`. `emit` has the output of the call as data and empties it ---
cdef bint emit(Context* c, const Word* topics, uint32_t count) noexcept nogil
cdef bint emit_number(
    Context* c, const Word* topics, uint32_t count, const Word* number
) noexcept nogil
# Emits a log with topic 0 and up to three addresses as indexed arguments (NULL: none); the data is
# the output.
cdef bint emit_addresses(
    Context* c, const Word* topic, const Address* a, const Address* b, const Address* d
) noexcept nogil

# --- ActivationRegistry ---
# Ends the call unless the feature is enabled. Charges an SLOAD at the registry.
cdef bint require_feature(Context* c, const Word* feature) noexcept nogil
cdef Address ACTIVATION_REGISTRY_ADDRESS, POLICY_REGISTRY_ADDRESS, FACTORY_ADDRESS
cdef Word ONE
