# The addresses of Arbitrum's precompiles.
from libc.stdint cimport uint32_t

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.intrinsics cimport load64
from fastevm.core.spec.schedule cimport Schedule


# The number of a precompile is the last byte of its address.
cdef enum ArbitrumContract:
    NO_CONTRACT = 0
    ARBOS_ACTS = 0x05         # 0xa4b05
    ARB_SYS = 0x64
    ARB_INFO = 0x65
    ARB_ADDRESS_TABLE = 0x66
    ARB_BLS = 0x67
    ARB_FUNCTION_TABLE = 0x68
    ARBOS_TEST = 0x69
    ARB_OWNER_PUBLIC = 0x6b
    ARB_GAS_INFO = 0x6c
    ARB_AGGREGATOR = 0x6d
    ARB_RETRYABLE_TX = 0x6e
    ARB_STATISTICS = 0x6f
    ARB_OWNER = 0x70
    ARB_WASM = 0x71
    ARB_WASM_CACHE = 0x72
    ARB_NATIVE_TOKEN_MANAGER = 0x73
    ARB_FILTERED_TRANSACTIONS_MANAGER = 0x74
    ARB_DEBUG = 0xff


cdef inline int first_version(uint32_t number) noexcept nogil:
    """Returns the version of ArbOS that introduced the precompile."""
    if number == ARB_WASM or number == ARB_WASM_CACHE:
        return 30
    if number == ARB_NATIVE_TOKEN_MANAGER:
        return 41
    return 60 if number == ARB_FILTERED_TRANSACTIONS_MANAGER else 1


cdef inline uint32_t arbitrum_contract_at(
    const Schedule* schedule, const Address* address
) noexcept nogil:
    cdef uint32_t number = address.b[19]
    if (load64(address.b) | load64(address.b + 8)) != 0 or address.b[16] != 0:
        return NO_CONTRACT
    if address.b[17] != 0 or address.b[18] != 0:
        if address.b[17] == 0x0a and address.b[18] == 0x4b and number == ARBOS_ACTS:
            return ARBOS_ACTS
        return NO_CONTRACT
    if not (ARB_SYS <= number <= ARB_FILTERED_TRANSACTIONS_MANAGER or number == ARB_DEBUG):
        return NO_CONTRACT
    if number == 0x6a or schedule.arbos_version < first_version(number):
        return NO_CONTRACT
    return number
