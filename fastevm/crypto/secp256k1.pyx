"""Who signed a hash, and signing: the libsecp256k1 that coincurve carries, called by address.

The recovery functions hold no GIL and share one context, which they only read. Signing exists for
development accounts and tests; it goes through the same library (RFC 6979 nonces, low s).
"""

from libc.string cimport memcpy, memset

import coincurve._libsecp256k1 as _library

from fastevm.primitives.intrinsics cimport (
    atomic_claim_int, atomic_observe_int, atomic_publish_int, load64_big, store64_big,
)
from fastevm.primitives.keccak cimport keccak256_64
from fastevm.primitives.native.symbols cimport native_function

cdef str MODULE = "coincurve._libsecp256k1"


# Opaque structures of secp256k1.h; bind() compares their sizes with the library's own.
cdef struct PublicKey:
    uint8_t data[64]


cdef struct RecoverableSignature:
    uint8_t data[65]


cdef struct Context


cdef enum:
    CONTEXT_NONE = 1                  # SECP256K1_CONTEXT_NONE
    UNCOMPRESSED = 2                  # SECP256K1_EC_UNCOMPRESSED
    UNCOMPRESSED_SIZE = 65            # 0x04 || x || y

ctypedef Context* (*ContextCreate)(unsigned int flags) noexcept nogil
ctypedef int (*ParseCompact)(
    const Context*, RecoverableSignature*, const uint8_t* rs64, int parity
) noexcept nogil
ctypedef int (*SerializeCompact)(
    const Context*, uint8_t* rs64, int* parity, const RecoverableSignature*
) noexcept nogil
ctypedef int (*Recover)(
    const Context*, PublicKey*, const RecoverableSignature*, const uint8_t* hash32
) noexcept nogil
ctypedef int (*SerializeKey)(
    const Context*, uint8_t* out, size_t* size, const PublicKey*, unsigned int flags
) noexcept nogil
ctypedef int (*CreateKey)(const Context*, PublicKey*, const uint8_t* private32) noexcept nogil
ctypedef int (*SignRecoverable)(
    const Context*, RecoverableSignature*, const uint8_t* hash32, const uint8_t* private32,
    void* nonce_function, const void* nonce_data
) noexcept nogil


cdef struct Library:
    Context* context          # only read, so all threads share it
    ParseCompact parse_compact
    SerializeCompact serialize_compact
    Recover recover
    SerializeKey serialize_key
    CreateKey create_key
    SignRecoverable sign_recoverable


cdef Library lib


# The C function by its name after the library's prefix.
cdef void* function(str name) except NULL:
    return native_function(MODULE, f"secp256k1_{name}")


cdef int bind() except -1:
    ffi = _library.ffi
    if (ffi.sizeof("secp256k1_pubkey") != sizeof(PublicKey)
            or ffi.sizeof("secp256k1_ecdsa_recoverable_signature") != sizeof(RecoverableSignature)):
        raise ImportError(f"{MODULE} has structures of other sizes than known", name=MODULE)
    lib.parse_compact = <ParseCompact>function("ecdsa_recoverable_signature_parse_compact")
    lib.serialize_compact = <SerializeCompact>function(
        "ecdsa_recoverable_signature_serialize_compact"
    )
    lib.recover = <Recover>function("ecdsa_recover")
    lib.serialize_key = <SerializeKey>function("ec_pubkey_serialize")
    lib.create_key = <CreateKey>function("ec_pubkey_create")
    lib.sign_recoverable = <SignRecoverable>function("ecdsa_sign_recoverable")
    lib.context = (<ContextCreate>function("context_create"))(CONTEXT_NONE)
    if lib.context == NULL:
        raise MemoryError
    return 0


# --- C level ---

cdef bint secp256k1_recover(
    const uint8_t* hash32, const uint8_t* r32, const uint8_t* s32, int y_parity, uint8_t* pubkey64
) noexcept nogil:
    cdef RecoverableSignature signature
    cdef PublicKey key
    cdef uint8_t rs[64]
    if y_parity != 0 and y_parity != 1:
        return False
    memcpy(rs, r32, 32)
    memcpy(rs + 32, s32, 32)
    # Zero scalars pass the parser and fail the recovery.
    if not lib.parse_compact(lib.context, &signature, rs, y_parity):
        return False
    if not lib.recover(lib.context, &key, &signature, hash32):
        return False
    key_bytes(pubkey64, &key)
    return True


cdef void key_bytes(uint8_t* pubkey64, const PublicKey* key) noexcept nogil:
    cdef uint8_t raw[UNCOMPRESSED_SIZE]
    cdef size_t size = UNCOMPRESSED_SIZE
    lib.serialize_key(lib.context, raw, &size, key, UNCOMPRESSED)
    memcpy(pubkey64, raw + 1, 64)


cdef bint recover_address(
    const uint8_t* hash32, const uint8_t* r32, const uint8_t* s32, int y_parity, Address* out
) noexcept nogil:
    cdef uint8_t key[64]
    cdef uint8_t digest[32]
    if not secp256k1_recover(hash32, r32, s32, y_parity, key):
        return False
    keccak256_64(digest, key)
    memcpy(out.b, digest + 12, 20)
    return True


# --- eight at once ---

cdef extern from "fastevm/crypto/secp256k1_lanes.h" nogil:
    bint has_lanes "fe_has_lanes"()
    void keep_multiple "fe_keep_multiple"(int number, const uint64_t* x, const uint64_t* y)
    void recover_in_lanes "fe_recover_eight"(Recovery* jobs)


cdef enum:
    G_MULTIPLES = 128             # that recovery in lanes needs
    LEAST_TOGETHER = 3            # eight lanes take about as long as two recoveries
    LANES_UNKNOWN = 0             # nobody asked yet
    LANES_OPENING = 1             # a thread makes the multiples; others go one by one so long
    LANES_OPEN = 2
    LANES_ABSENT = 3


cdef int lanes = LANES_UNKNOWN


cdef inline void read_words(uint64_t* words, const uint8_t* bytes32) noexcept nogil:
    cdef int i
    for i in range(4):
        words[i] = load64_big(bytes32 + 24 - 8 * i)


# A few milliseconds, when somebody needs them.
cdef void open_lanes() noexcept nogil:
    cdef uint8_t scalar[32]
    cdef uint8_t raw[64]
    cdef uint64_t x[4]
    cdef uint64_t y[4]
    cdef PublicKey key
    cdef int i
    if not atomic_claim_int(&lanes, LANES_UNKNOWN, LANES_OPENING):
        return
    if not has_lanes():
        atomic_publish_int(&lanes, LANES_ABSENT)
        return
    memset(scalar, 0, sizeof(scalar))
    for i in range(G_MULTIPLES):
        scalar[31] = <uint8_t>(2 * i + 1)
        lib.create_key(lib.context, &key, scalar)
        key_bytes(raw, &key)
        read_words(x, raw)
        read_words(y, raw + 32)
        keep_multiple(i, x, y)
    atomic_publish_int(&lanes, LANES_OPEN)


cdef bint recovers_together(size_t count) noexcept nogil:
    if count < LEAST_TOGETHER:
        return False
    if atomic_observe_int(&lanes) == LANES_UNKNOWN:
        open_lanes()
    return atomic_observe_int(&lanes) == LANES_OPEN


cdef void recover_eight(Recovery* jobs, Address* out) noexcept nogil:
    cdef uint8_t key[64]
    cdef uint8_t digest[32]
    cdef int lane, i
    recover_in_lanes(jobs)
    for lane in range(RECOVERY_LANES):
        if not jobs[lane].found:
            continue
        for i in range(4):
            store64_big(key + 24 - 8 * i, jobs[lane].key[i])
            store64_big(key + 56 - 8 * i, jobs[lane].key[4 + i])
        keccak256_64(digest, key)
        memcpy(out[lane].b, digest + 12, 20)


# --- Python's border ---

cdef bytes exactly(str name, object value, size_t size):
    if not isinstance(value, bytes) or <size_t>len(value) != size:
        raise ValueError(f"{name} must be {size} bytes")
    return value


cdef bytes scalar(str name, object value):
    if not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value < 0 or value.bit_length() > 256:
        raise ValueError(f"{name} is not a 256-bit number")
    return value.to_bytes(32, "big")


def recover(message_hash: bytes, y_parity: int, r: int, s: int) -> bytes:
    """The 64-byte public key (x || y) that signed the 32-byte hash; a high s is accepted.

    ``y_parity`` is 0 or 1. ValueError when no key gives this signature.
    """
    cdef uint8_t key[64]
    cdef bytes digest = exactly("message_hash", message_hash, 32)
    cdef bytes r_bytes = scalar("r", r), s_bytes = scalar("s", s)
    cdef const uint8_t* h = digest
    cdef const uint8_t* pr = r_bytes
    cdef const uint8_t* ps = s_bytes
    cdef int parity = y_parity if y_parity == 0 or y_parity == 1 else -1
    cdef bint found
    with nogil:
        found = secp256k1_recover(h, pr, ps, parity, key)
    if not found:
        raise ValueError("no public key gives this signature")
    return key[:64]


def recover_signer(message_hash: bytes, y_parity: int, r: int, s: int) -> bytes:
    """The 20-byte address that signed the 32-byte hash; arguments and errors as of ``recover``."""
    return public_key_to_address(recover(message_hash, y_parity, r, s))


def sign(message_hash: bytes, private_key: bytes) -> tuple[int, int, int]:
    """Sign a 32-byte hash: ``(y_parity, r, s)``, deterministic (RFC 6979), s in the lower half.

    ValueError when the private key is 0 or not below the group order.
    """
    cdef RecoverableSignature signature
    cdef uint8_t rs[64]
    cdef int parity = 0
    cdef bytes digest = exactly("message_hash", message_hash, 32)
    cdef bytes secret = exactly("private_key", private_key, 32)
    if not lib.sign_recoverable(lib.context, &signature, digest, secret, NULL, NULL):
        raise ValueError("not a valid private key")
    lib.serialize_compact(lib.context, rs, &parity, &signature)
    return parity, int.from_bytes(rs[:32], "big"), int.from_bytes(rs[32:64], "big")


def public_key(private_key: bytes) -> bytes:
    """The 64-byte public key (x || y) of a 32-byte private key; ValueError out of range."""
    cdef PublicKey key
    cdef uint8_t out[64]
    cdef bytes secret = exactly("private_key", private_key, 32)
    if not lib.create_key(lib.context, &key, secret):
        raise ValueError("not a valid private key")
    key_bytes(out, &key)
    return out[:64]


def public_key_to_address(key: bytes) -> bytes:
    """The 20-byte address of a 64-byte public key (x || y)."""
    cdef uint8_t digest[32]
    cdef bytes raw = exactly("key", key, 64)
    keccak256_64(digest, raw)
    return digest[12:32]


def public_key_address(private_key: bytes) -> bytes:
    """The 20-byte address that a 32-byte private key controls; ValueError out of range."""
    return public_key_to_address(public_key(private_key))


bind()
