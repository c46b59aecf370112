"""Runs a call to an Arbitrum precompile: the checks that all methods share, then the method.

The order of checks and charges is that of Nitro, ``precompiles/precompile.go``.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memset

from fastevm.core.native.arbitrum import accounts, arb_sys, chain, gas_info, wasm

from fastevm.core.native.arbitrum.addresses cimport ARB_DEBUG, ARB_OWNER
from fastevm.core.native.arbitrum.context cimport (
    COPY_WORD, PAYABLE, PURE, SLOT_READ, WRITE, Argument, Context, Method, burn_all, charge,
    find_method, give, is_member, load_at,
)
from fastevm.core.native.arbitrum.storage cimport OWNERS
from fastevm.core.native.call cimport NativeCall, native_refuse
from fastevm.core.primitives.intrinsics cimport load32_big
from fastevm.core.primitives.word cimport (
    Word, word_fits64, word_from_address, word_is_zero, word_load,
)


# Importing these modules adds their methods to the table.
MODULES = (accounts, arb_sys, chain, gas_info, wasm)

cdef enum:
    SELECTOR_SIZE = 4
    WORD_SIZE = 32
    MOST_ARGUMENTS = 8


# Reads an offset or a length. Returns False if it exceeds the data.
cdef bint read_size(const uint8_t* data, size_t size, size_t at, size_t* out) noexcept nogil:
    cdef Word word
    if size < WORD_SIZE or at > size - WORD_SIZE:
        return False
    word_load(&word, data + at)
    if not word_fits64(&word) or word.d[0] > size:
        return False
    out[0] = <size_t>word.d[0]
    return True


cdef bint decode_bytes(
    Argument* out, const uint8_t* data, size_t size, size_t at
) noexcept nogil:
    cdef size_t offset = 0
    if not (read_size(data, size, at, &offset) and read_size(data, size, offset, &out.size)):
        return False
    offset += WORD_SIZE
    if out.size > size - offset:
        return False
    out.bytes = data + offset
    return True


# Decodes the arguments as go-ethereum does: an address ignores its first 12 bytes, and further data
# is allowed.
cdef bint decode(
    Argument* out, const char* codes, const uint8_t* data, size_t size
) noexcept nogil:
    cdef size_t at = 0
    while codes[0] != 0:
        if size < WORD_SIZE or at > size - WORD_SIZE:
            return False
        word_load(&out.word, data + at)
        if codes[0] == c"y":
            if not decode_bytes(out, data, size, at):
                return False
        elif codes[0] == c"a":
            out.word.d[2] &= 0xffffffffu
            out.word.d[3] = 0
        elif codes[0] == c"l" and not word_fits64(&out.word):
            return False
        at += WORD_SIZE
        out += 1
        codes += 1
    return True


cdef bint run_method(Context* c, const Method* method) noexcept nogil:
    cdef NativeCall* call = c.call
    cdef Argument arguments[MOST_ARGUMENTS]
    cdef Word word
    memset(arguments, 0, sizeof(arguments))
    if method.kind != PURE and call.is_delegated:
        return burn_all(c)
    if method.kind >= WRITE and call.is_static:
        return burn_all(c)
    if method.kind != PAYABLE and not word_is_zero(&call.value):
        return burn_all(c)
    if method.kind != PURE and not charge(c, SLOT_READ):  # the version of ArbOS
        return False
    if not charge(c, COPY_WORD * <int64_t>((call.size - SELECTOR_SIZE + 31) >> 5)):
        return False
    if not decode(arguments, method.codes, call.data + SELECTOR_SIZE, call.size - SELECTOR_SIZE):
        return burn_all(c)
    c.key = method.key
    if method.space != NULL:
        if not (load_at(c, method.space, method.key, &word) and give(c, &word)):
            return False
    elif method.run == NULL:
        return native_refuse(call, method.refused)
    elif not method.run(c, arguments):
        return False
    return charge(c, COPY_WORD * <int64_t>((call.output.size + 31) >> 5))


# Only owners of the chain may call ArbOwner, and they pay no gas.
cdef bint check_owner(Context* c) noexcept nogil:
    cdef Word caller
    cdef bint is_owner = False
    word_from_address(&caller, &c.call.caller)
    if not (charge(c, SLOT_READ) and is_member(c, &OWNERS, &caller, &is_owner)):
        return False
    return is_owner or burn_all(c)


cdef bint run(Context* c, uint32_t number) noexcept nogil:
    cdef NativeCall* call = c.call
    cdef const Method* method = NULL
    cdef int64_t gas = call.gas
    if number == ARB_OWNER and not check_owner(c):
        return False
    if number == ARB_OWNER:
        call.gas = gas
        c.is_free = True
    if call.size < SELECTOR_SIZE or number == ARB_DEBUG:
        return burn_all(c)
    method = find_method(number, load32_big(call.data), c.version)
    return burn_all(c) if method == NULL else run_method(c, method)


cdef void arbitrum_run(uint32_t number, NativeCall* call) noexcept nogil:
    cdef Context context
    memset(&context, 0, sizeof(context))
    context.call = call
    context.version = <int>call.schedule.arbos_version
    run(&context, number)
