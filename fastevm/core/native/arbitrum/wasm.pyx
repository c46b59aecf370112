"""ArbWasm and ArbWasmCache: parameters and programs of Stylus."""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memset

from fastevm.core.native.arbitrum.addresses cimport ARB_WASM, ARB_WASM_CACHE
from fastevm.core.native.arbitrum.context cimport (
    PAYABLE, VIEW, WRITE, Argument, Context, add, add_refused, begin_error, burn_all, charge,
    end_error, fail, fail_named, give_members, give_number, is_member, load, load_at, load_free,
)
from fastevm.core.native.arbitrum.storage cimport (
    ACTIVATION_GAS, CACHE_MANAGERS, OWNERS, PROGRAMS, STYLUS_PARAMETERS, slot_of,
)
from fastevm.core.native.call cimport native_account, native_refuse
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport (
    Word, word_from_address, word_load, word_store, word_to_address, word_zero,
)
from fastevm.core.state.account cimport Account


cdef enum:
    PARAMETERS_GAS = 100
    CODE_HASH_GAS = 2_600
    PAGE_RAMP = 620_674_314
    PROGRAM_NOT_ACTIVATED = 0x6f809c4e
    PROGRAM_NEEDS_UPGRADE = 0x637d968f
    PROGRAM_EXPIRED = 0xc9b12e52u
    DAY = 86_400              # seconds
    HOUR = 3_600
    START_TIME = 1_421_388_000  # Unix seconds; activation times are hours since then
    INIT_GAS_UNIT = 128
    CACHED_GAS_UNIT = 32
    SCALAR_PERCENT = 2


# The parameters, in their order in the slot.
cdef enum:
    VERSION
    INK_PRICE
    MAX_STACK_DEPTH
    FREE_PAGES
    PAGE_GAS
    PAGE_LIMIT
    MIN_INIT_GAS
    MIN_CACHED_GAS
    INIT_SCALAR
    CACHED_SCALAR
    EXPIRY_DAYS
    KEEPALIVE_DAYS
    BLOCK_CACHE_SIZE
    PARAMETERS

cdef int[PARAMETERS] SIZES = [2, 3, 4, 2, 2, 2, 1, 1, 1, 1, 2, 2, 2]  # bytes of each parameter


cdef struct Parameters:
    uint64_t of[PARAMETERS]


cdef struct Program:
    uint64_t version
    uint64_t init_cost
    uint64_t cached_cost
    uint64_t footprint
    uint64_t age              # seconds
    uint64_t asm_kilobytes
    uint64_t cached


cdef uint64_t take(const uint8_t** at, int size) noexcept nogil:
    cdef uint64_t number = 0
    cdef int i
    for i in range(size):
        number = (number << 8) | at[0][i]
    at[0] += size
    return number


cdef bint load_parameters(Context* c, Parameters* out) noexcept nogil:
    cdef uint8_t bytes[32]
    cdef const uint8_t* at = bytes
    cdef Word word
    cdef int i
    if not (charge(c, PARAMETERS_GAS) and load_free(c, &STYLUS_PARAMETERS, 0, &word)):
        return False
    word_store(bytes, &word)
    for i in range(PARAMETERS):
        out.of[i] = take(&at, SIZES[i])
    return True


cdef bint load_program(Context* c, const Word* code_hash, Program* out) noexcept nogil:
    cdef uint8_t bytes[32]
    cdef const uint8_t* at = bytes
    cdef uint64_t activated
    cdef Word word
    slot_of(&word, &PROGRAMS, code_hash)
    if not load(c, &word, &word):
        return False
    word_store(bytes, &word)
    out.version = take(&at, 2)
    out.init_cost = take(&at, 2)
    out.cached_cost = take(&at, 2)
    out.footprint = take(&at, 2)
    activated = START_TIME + HOUR * take(&at, 3)
    out.age = c.call.timestamp - activated if c.call.timestamp > activated else 0
    out.asm_kilobytes = take(&at, 3)
    out.cached = take(&at, 1)
    return True


# Loads a program. Fails unless it can run: activated, of the newest version, not expired.
cdef bint load_active(
    Context* c, const Parameters* parameters, const Word* code_hash, Program* out
) noexcept nogil:
    if not load_program(c, code_hash, out):
        return False
    if out.version == 0:
        return fail_named(c, PROGRAM_NOT_ACTIVATED)
    if out.version != parameters.of[VERSION]:
        return (
            begin_error(c, PROGRAM_NEEDS_UPGRADE) and give_number(c, out.version)
            and give_number(c, parameters.of[VERSION]) and end_error(c)
        )
    if out.age > parameters.of[EXPIRY_DAYS] * DAY:
        return begin_error(c, PROGRAM_EXPIRED) and give_number(c, out.age) and end_error(c)
    return True


cdef bint code_hash_of(Context* c, const Argument* a, Word* out) noexcept nogil:
    cdef Address address
    cdef Account* account
    if not charge(c, CODE_HASH_GAS):
        return False
    word_to_address(&address, &a.word)
    account = native_account(c.call, &address)
    if account == NULL:
        return False
    word_zero(out)
    if account.exists:
        word_load(out, account.code_hash.b)
    return True


cdef bint load_active_at(
    Context* c, const Argument* a, Parameters* parameters, Program* out
) noexcept nogil:
    cdef Word code_hash
    return (
        load_parameters(c, parameters) and code_hash_of(c, a, &code_hash)
        and load_active(c, parameters, &code_hash, out)
    )


# --- parameters ---

# Returns the parameter with the number `c.key`, which comes from the method's row.
cdef bint parameter(Context* c, const Argument* a) noexcept nogil:
    cdef Parameters p
    memset(&p, 0, sizeof(p))
    return load_parameters(c, &p) and give_number(c, p.of[c.key])


cdef bint page_ramp(Context* c, const Argument* a) noexcept nogil:
    cdef Parameters p
    memset(&p, 0, sizeof(p))
    return load_parameters(c, &p) and give_number(c, PAGE_RAMP)


cdef bint min_init_gas(Context* c, const Argument* a) noexcept nogil:
    cdef Parameters p
    memset(&p, 0, sizeof(p))
    if not load_parameters(c, &p):
        return False
    if c.version < 32:  # Nitro reverts before its correction of these charges
        return fail(c)
    return (
        give_number(c, p.of[MIN_INIT_GAS] * INIT_GAS_UNIT)
        and give_number(c, p.of[MIN_CACHED_GAS] * CACHED_GAS_UNIT)
    )


cdef bint init_cost_scalar(Context* c, const Argument* a) noexcept nogil:
    cdef Parameters p
    memset(&p, 0, sizeof(p))
    return load_parameters(c, &p) and give_number(c, p.of[INIT_SCALAR] * SCALAR_PERCENT)


cdef bint activation_gas(Context* c, const Argument* a) noexcept nogil:
    cdef Word word
    return load_at(c, &ACTIVATION_GAS, 0, &word) and give_number(c, word.d[0])


# --- programs ---

cdef bint codehash_version(Context* c, const Argument* a) noexcept nogil:
    cdef Parameters p
    cdef Program program
    memset(&p, 0, sizeof(p))
    memset(&program, 0, sizeof(program))
    return (
        load_parameters(c, &p) and load_active(c, &p, &a[0].word, &program)
        and give_number(c, program.version)
    )


cdef bint codehash_asm_size(Context* c, const Argument* a) noexcept nogil:
    cdef Parameters p
    cdef Program program
    memset(&p, 0, sizeof(p))
    memset(&program, 0, sizeof(program))
    return (
        load_parameters(c, &p) and load_active(c, &p, &a[0].word, &program)
        and give_number(c, program.asm_kilobytes * 1024)
    )


cdef bint program_version(Context* c, const Argument* a) noexcept nogil:
    cdef Parameters p
    cdef Program program
    memset(&p, 0, sizeof(p))
    memset(&program, 0, sizeof(program))
    return load_active_at(c, &a[0], &p, &program) and give_number(c, program.version)


# Returns a minimum plus a percentage of the measured cost, rounded up.
cdef uint64_t scaled_cost(
    uint64_t minimum, uint64_t unit, uint64_t cost, uint64_t scalar
) noexcept nogil:
    return minimum * unit + (cost * scalar * SCALAR_PERCENT + 99) // 100


cdef bint program_init_gas(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t full, cached
    cdef Parameters p
    cdef Program program
    memset(&p, 0, sizeof(p))
    memset(&program, 0, sizeof(program))
    if not load_active_at(c, &a[0], &p, &program):
        return False
    cached = scaled_cost(
        p.of[MIN_CACHED_GAS], CACHED_GAS_UNIT, program.cached_cost, p.of[CACHED_SCALAR]
    )
    full = scaled_cost(p.of[MIN_INIT_GAS], INIT_GAS_UNIT, program.init_cost, p.of[INIT_SCALAR])
    if p.of[VERSION] > 1:
        full += cached
    return give_number(c, full) and give_number(c, cached)


cdef bint program_memory_footprint(Context* c, const Argument* a) noexcept nogil:
    cdef Parameters p
    cdef Program program
    memset(&p, 0, sizeof(p))
    memset(&program, 0, sizeof(program))
    return load_active_at(c, &a[0], &p, &program) and give_number(c, program.footprint)


cdef bint program_time_left(Context* c, const Argument* a) noexcept nogil:
    cdef Parameters p
    cdef Program program
    memset(&p, 0, sizeof(p))
    memset(&program, 0, sizeof(program))
    return (
        load_active_at(c, &a[0], &p, &program)
        and give_number(c, p.of[EXPIRY_DAYS] * DAY - program.age)
    )


# --- the cache ---

cdef bint is_cache_manager(Context* c, const Argument* a) noexcept nogil:
    cdef bint found = False
    return is_member(c, &CACHE_MANAGERS, &a[0].word, &found) and give_number(c, found)


cdef bint all_cache_managers(Context* c, const Argument* a) noexcept nogil:
    return give_members(c, &CACHE_MANAGERS)


cdef bint codehash_is_cached(Context* c, const Argument* a) noexcept nogil:
    cdef Program program
    memset(&program, 0, sizeof(program))
    return load_program(c, &a[0].word, &program) and give_number(c, program.cached != 0)


cdef bint change_cache(Context* c) noexcept nogil:
    cdef bint found = False
    cdef Word caller
    word_from_address(&caller, &c.call.caller)
    if not is_member(c, &CACHE_MANAGERS, &caller, &found):
        return False
    if not found and not is_member(c, &OWNERS, &caller, &found):
        return False
    if not found:
        return burn_all(c)
    return native_refuse(
        c.call, b"ArbWasmCache: changes of the cache of programs are not supported on a fork"
    )


cdef bint cache_program(Context* c, const Argument* a) noexcept nogil:
    cdef Word code_hash
    return code_hash_of(c, &a[0], &code_hash) and change_cache(c)


cdef bint cache_codehash(Context* c, const Argument* a) noexcept nogil:
    return change_cache(c)


add(ARB_WASM, 30, VIEW, b"stylusVersion()", parameter, 0, VERSION)
add(ARB_WASM, 30, VIEW, b"inkPrice()", parameter, 0, INK_PRICE)
add(ARB_WASM, 30, VIEW, b"maxStackDepth()", parameter, 0, MAX_STACK_DEPTH)
add(ARB_WASM, 30, VIEW, b"freePages()", parameter, 0, FREE_PAGES)
add(ARB_WASM, 30, VIEW, b"pageGas()", parameter, 0, PAGE_GAS)
add(ARB_WASM, 30, VIEW, b"pageRamp()", page_ramp)
add(ARB_WASM, 30, VIEW, b"pageLimit()", parameter, 0, PAGE_LIMIT)
add(ARB_WASM, 30, VIEW, b"minInitGas()", min_init_gas)
add(ARB_WASM, 30, VIEW, b"initCostScalar()", init_cost_scalar)
add(ARB_WASM, 30, VIEW, b"expiryDays()", parameter, 0, EXPIRY_DAYS)
add(ARB_WASM, 30, VIEW, b"keepaliveDays()", parameter, 0, KEEPALIVE_DAYS)
add(ARB_WASM, 30, VIEW, b"blockCacheSize()", parameter, 0, BLOCK_CACHE_SIZE)
add(ARB_WASM, 59, VIEW, b"activationGas()", activation_gas)
add(ARB_WASM, 30, VIEW, b"codehashVersion(bytes32)", codehash_version)
add(ARB_WASM, 30, VIEW, b"codehashAsmSize(bytes32)", codehash_asm_size)
add(ARB_WASM, 30, VIEW, b"programVersion(address)", program_version)
add(ARB_WASM, 30, VIEW, b"programInitGas(address)", program_init_gas)
add(ARB_WASM, 30, VIEW, b"programMemoryFootprint(address)", program_memory_footprint)
add(ARB_WASM, 30, VIEW, b"programTimeLeft(address)", program_time_left)
add_refused(
    ARB_WASM, 30, PAYABLE, b"activateProgram(address)", "activation needs a WebAssembly compiler"
)
add_refused(
    ARB_WASM, 30, PAYABLE, b"codehashKeepalive(bytes32)",
    "lifetimes of programs do not change on a fork",
)
add(ARB_WASM_CACHE, 30, VIEW, b"isCacheManager(address)", is_cache_manager)
add(ARB_WASM_CACHE, 30, VIEW, b"allCacheManagers()", all_cache_managers)
add(ARB_WASM_CACHE, 30, VIEW, b"codehashIsCached(bytes32)", codehash_is_cached)
add(ARB_WASM_CACHE, 31, WRITE, b"cacheProgram(address)", cache_program)
add(ARB_WASM_CACHE, 30, WRITE, b"cacheCodehash(bytes32)", cache_codehash, 30)
add(ARB_WASM_CACHE, 30, WRITE, b"evictCodehash(bytes32)", cache_codehash)
