"""Tables of functions: selector, first version, argument types, body."""

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from fastevm.core.native.base.abi cimport (
    ARGUMENT_LIMIT, DECODED, SELECTOR_SIZE, Decoded, Slice, decode, revert_undecoded,
)
from fastevm.core.native.base.context cimport BERYL, Context, Function
from fastevm.core.native.call cimport native_append, native_revert
from fastevm.core.primitives.intrinsics cimport load32_big
from fastevm.core.primitives.keccak cimport keccak256


CODES = {
    "address": "a", "uint256": "u", "uint8": "8", "uint64": "l", "bool": "b", "bytes32": "w",
    "bytes4": "4", "feature": "f", "variant": "v", "policy": "p", "string": "s", "bytes": "y",
    "address[]": "A", "uint256[]": "U", "uint64[]": "L", "feature[]": "F", "bytes[]": "Y",
}
ENUMS = ("feature", "variant", "policy")

# Owns the texts that the tables point to.
TEXTS = []


cdef int add(MethodTable* table, int version, bytes signature, Function run) except -1:
    cdef uint8_t digest[32]
    cdef Method* method
    cdef bytes codes, canonical, types
    name, arguments = signature.decode().rstrip(")").split("(")
    arguments = arguments.split(",") if arguments else []
    codes = "".join([CODES[argument] for argument in arguments]).encode()
    canonical = signature
    for one in ENUMS:
        canonical = canonical.replace(one.encode(), b"uint8")
    # The name of a function may contain the name of an enum.
    canonical = name.encode() + b"(" + canonical.split(b"(")[1]
    types = b"(" + canonical.split(b"(")[1]
    if len(codes) > ARGUMENT_LIMIT or table.count >= METHOD_LIMIT // 2:
        raise ValueError(f"{signature}: too many arguments or functions")
    TEXTS.append(types)
    keccak256(digest, <const uint8_t*><const char*>canonical, len(canonical))
    method = entry(table, load32_big(digest))
    if method.version != 0:
        raise ValueError(f"{signature}: is in the table already")
    method.selector = load32_big(digest)
    method.version = version
    method.run = run
    method.types = types
    for i, code in enumerate(codes):
        method.codes[<int>i] = <char>code
    table.count += 1
    table.version = max(table.version, version)
    return 0


# Returns the entry of the selector, or the empty entry where it belongs.
cdef Method* entry(const MethodTable* table, uint32_t selector) noexcept nogil:
    cdef uint32_t at = selector & (METHOD_LIMIT - 1)
    while table.methods[at].version != 0 and table.methods[at].selector != selector:
        at = (at + 1) & (METHOD_LIMIT - 1)
    return <Method*>&table.methods[at]


cdef const Method* find(const MethodTable* table, int version, uint32_t selector) noexcept nogil:
    cdef const Method* method = entry(table, selector)
    return method if method.version != 0 and method.version <= version else NULL


# Reverts with the first four bytes of the input, or four zeros.
cdef bint revert_unknown(Context* c, Slice input) noexcept nogil:
    cdef uint8_t selector[4]
    memset(selector, 0, sizeof(selector))
    c.is_undispatched = True
    c.call.output.size = 0
    return (
        native_append(
            c.call, input.bytes if input.size >= SELECTOR_SIZE else selector, SELECTOR_SIZE
        )
        and native_revert(c.call)
    )


cdef bint dispatch(
    Context* c, const MethodTable* table, const MethodTable* second, Slice input
) noexcept nogil:
    cdef const Method* method = NULL
    cdef Decoded decoded
    cdef bint short_input = input.size < table.least_size
    memset(&decoded, 0, sizeof(decoded))
    c.is_undispatched = c.has_panicked = False
    if input.size >= SELECTOR_SIZE:
        method = find(table, c.version, load32_big(input.bytes))
        if method == NULL and second != NULL:
            method = find(second, c.version, load32_big(input.bytes))
    if method == NULL:
        return revert_unknown(c, input)
    if not (short_input and c.version == BERYL):
        decode(
            &decoded, method.codes, c.version, input.bytes + SELECTOR_SIZE,
            input.size - SELECTOR_SIZE,
        )
        if decoded.error == DECODED:
            return method.run(c, decoded.arguments)
    c.is_undispatched = True
    if short_input:
        return revert_undecoded(
            c.call, input.bytes, c.version, method.codes, table.name, &decoded, &input
        )
    return revert_undecoded(
        c.call, input.bytes, c.version, method.codes, method.types, &decoded, NULL
    )
