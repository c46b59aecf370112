# The addresses of Base's native contracts.
from libc.stdint cimport uint8_t, uint32_t

from fastevm.core.primitives.hashes cimport Address


cdef enum BaseContract:
    NO_CONTRACT = 0
    ASSET = 1
    STABLECOIN = 2
    FACTORY = 3
    ACTIVATION_REGISTRY = 4
    POLICY_REGISTRY = 5


cdef enum:
    TOKEN_BYTE = 0xb2         # first byte of the addresses of tokens and of the factory
    VARIANT_AT = 10           # index of the byte with the variant in a token's address
    PREFIX_SIZE = 10          # bytes that all token addresses begin with
    VARIANTS = 2              # 0 asset, 1 stablecoin


cdef inline bint all_zero(const uint8_t* bytes, int size) noexcept nogil:
    cdef int i
    for i in range(size):
        if bytes[i] != 0:
            return False
    return True


cdef inline bint has_token_prefix(const Address* address) noexcept nogil:
    return address.b[0] == TOKEN_BYTE and all_zero(&address.b[1], PREFIX_SIZE - 1)


cdef inline uint32_t base_registry_at(const Address* address) noexcept nogil:
    if address.b[0] == TOKEN_BYTE and address.b[1] == 0x0f and all_zero(&address.b[2], 18):
        return FACTORY
    if address.b[0] == 0x84 and address.b[1] == 0x53 and all_zero(&address.b[2], 17):
        if address.b[19] == 1:
            return ACTIVATION_REGISTRY
        if address.b[19] == 2:
            return POLICY_REGISTRY
    return NO_CONTRACT


# Returns the BaseContract at an address. A token's address is native even if the token was not
# created.
cdef inline uint32_t base_contract_at(const Address* address) noexcept nogil:
    if has_token_prefix(address):
        return ASSET + address.b[VARIANT_AT] if address.b[VARIANT_AT] < VARIANTS else NO_CONTRACT
    return base_registry_at(address)


# Whether an address is warm from the start: factory and registries are, tokens are not.
cdef inline bint base_is_warm(const Address* address) noexcept nogil:
    return base_registry_at(address) != NO_CONTRACT
