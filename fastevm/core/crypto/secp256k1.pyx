"""Recovers signers and signs hashes with the libsecp256k1 inside coincurve.

The recovery functions need no GIL and share one read-only context. Signing exists for development
accounts and tests and uses the same library (RFC 6979 nonces, low s).
"""

from libc.string cimport memcpy, memset

import coincurve._libsecp256k1 as _library

from fastevm.core.primitives.exact_bytes cimport exactly
from fastevm.core.primitives.intrinsics cimport (
    atomic_claim_int, atomic_observe_int, atomic_publish_int, store64_big,
)
from fastevm.core.primitives.keccak cimport keccak256_64
from fastevm.core.primitives.native.symbols cimport native_function

from fastevm.core.primitives.processor import SIMD_ALLOWED, replace

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
    Context* context          # read-only, so all threads share it
    ParseCompact parse_compact
    SerializeCompact serialize_compact
    Recover recover
    SerializeKey serialize_key
    CreateKey create_key
    SignRecoverable sign_recoverable


cdef Library lib


# Returns the library's function `secp256k1_` + name.
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
    # The parser accepts zero scalars; the recovery rejects them.
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


# --- eight signatures together ---

cdef extern from "fastevm/core/crypto/secp256k1_lanes.h" nogil:
    bint has_lanes "fe_has_lanes"()
    void keep_multiple "fe_keep_multiple"(int number, const uint64_t* x, const uint64_t* y)
    void recover_in_lanes "fe_recover_eight"(Recovery* jobs)


cdef enum:
    LEAST_TOGETHER = 3  # eight lanes take about as long as two single recoveries
    LANES_UNKNOWN = 0             # not checked yet
    LANES_OPENING = 1             # a thread prepares the vector code; others use libsecp256k1
    LANES_OPEN = 2
    LANES_ABSENT = 3              # the processor lacks the instructions
    LANES_OFF = 4                 # FASTEVM_SIMD=off
    LANES_WRONG = 5               # wrong result for a known signature


LANES_STATES = ("unknown", "opening", "open", "absent", "off", "wrong")

cdef int lanes = LANES_UNKNOWN
cdef int NOT_AVAILABLE = LANES_ABSENT if SIMD_ALLOWED else LANES_OFF

cdef LaneFunctions lane_functions
lane_functions.available = SIMD_ALLOWED and has_lanes()
lane_functions.keep_multiple = keep_multiple
lane_functions.recover = recover_in_lanes


# Prepares and tests the vector code. This takes a few milliseconds, so it is done on first use.
cdef void open_lanes() noexcept nogil:
    cdef uint8_t scalar[32]
    cdef uint8_t raw[64]
    cdef uint64_t x[4]
    cdef uint64_t y[4]
    cdef PublicKey key
    cdef int i
    if not atomic_claim_int(&lanes, LANES_UNKNOWN, LANES_OPENING):
        return
    if not lane_functions.available:
        atomic_publish_int(&lanes, NOT_AVAILABLE)
        return
    memset(scalar, 0, sizeof(scalar))
    for i in range(G_MULTIPLES):
        scalar[31] = <uint8_t>(2 * i + 1)
        lib.create_key(lib.context, &key, scalar)
        key_bytes(raw, &key)
        read_words(x, raw)
        read_words(y, raw + 32)
        lane_functions.keep_multiple(i, x, y)
    if lanes_agree():
        atomic_publish_int(&lanes, LANES_OPEN)
    else:
        atomic_publish_int(&lanes, LANES_WRONG)
        say_that_lanes_are_wrong()


cdef void say_that_lanes_are_wrong() noexcept with gil:
    replace("signatures of many", "8 lanes", "libsecp256k1")


# Self-test: signs with eight known keys, with both parities. Each lane must recover its key.
cdef bint lanes_agree() noexcept nogil:
    cdef Recovery jobs[RECOVERY_LANES]
    cdef RecoverableSignature signature
    cdef PublicKey key
    cdef uint8_t secret[32]
    cdef uint8_t raw[64]
    cdef uint64_t expected[8]
    cdef int lane, i
    for lane in range(RECOVERY_LANES):
        lane_secret(secret, lane)
        lib.sign_recoverable(lib.context, &signature, secret, secret, NULL, NULL)
        lib.serialize_compact(lib.context, raw, &jobs[lane].y_parity, &signature)
        read_words(jobs[lane].z, secret)
        read_words(jobs[lane].r, raw)
        read_words(jobs[lane].s, raw + 32)
    lane_functions.recover(jobs)
    for lane in range(RECOVERY_LANES):
        lane_secret(secret, lane)
        lib.create_key(lib.context, &key, secret)
        key_bytes(raw, &key)
        read_words(expected, raw)
        read_words(expected + 4, raw + 32)
        for i in range(8):
            if not jobs[lane].found or jobs[lane].key[i] != expected[i]:
                return False
    return True


# Computes the private key and the hash of a lane for the self-test.
cdef inline void lane_secret(uint8_t* secret, int lane) noexcept nogil:
    cdef int i
    for i in range(32):
        secret[i] = <uint8_t>(lane * 37 + i * 11 + 1)


cdef bint recovers_together(size_t count) noexcept nogil:
    if count < LEAST_TOGETHER:
        return False
    if atomic_observe_int(&lanes) == LANES_UNKNOWN:
        open_lanes()
    return atomic_observe_int(&lanes) == LANES_OPEN


cdef LaneFunctions replace_lanes(const LaneFunctions* functions) noexcept nogil:
    global lane_functions
    cdef LaneFunctions before = lane_functions
    lane_functions = functions[0]
    atomic_publish_int(&lanes, LANES_UNKNOWN)
    return before


cdef void recover_eight(Recovery* jobs, Address* out) noexcept nogil:
    cdef uint8_t key[64]
    cdef uint8_t digest[32]
    cdef int lane, i
    lane_functions.recover(jobs)
    for lane in range(RECOVERY_LANES):
        if not jobs[lane].found:
            continue
        for i in range(4):
            store64_big(key + 24 - 8 * i, jobs[lane].key[i])
            store64_big(key + 56 - 8 * i, jobs[lane].key[4 + i])
        keccak256_64(digest, key)
        memcpy(out[lane].b, digest + 12, 20)


# --- Python functions ---

def lanes_state() -> str:
    """Returns whether this process recovers eight signatures together.

    ``open``: yes. ``absent``: no, because the processor has no AVX-512 IFMA. ``off``: no, because
    of FASTEVM_SIMD=off. ``wrong``: no, because the vector code failed its self-test. The first call
    runs the self-test.
    """
    recovers_together(RECOVERY_LANES)
    return LANES_STATES[atomic_observe_int(&lanes)]


cdef bytes scalar(str name, object value):
    if not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value < 0 or value.bit_length() > 256:
        raise ValueError(f"{name} is not a 256-bit number")
    return value.to_bytes(32, "big")


def recover(message_hash: bytes, y_parity: int, r: int, s: int) -> bytes:
    """Returns the 64-byte public key (x || y) that signed the hash. A high s is accepted.

    ``message_hash`` has 32 bytes, ``y_parity`` is 0 or 1. Raises ValueError if no key has made this
    signature.
    """
    cdef uint8_t key[64]
    cdef const uint8_t* h = exactly(message_hash, 32, "message_hash")
    cdef bytes r_bytes = scalar("r", r), s_bytes = scalar("s", s)
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
    """Returns the 20-byte address that signed the hash; arguments and errors as for ``recover``."""
    return public_key_to_address(recover(message_hash, y_parity, r, s))


def sign(message_hash: bytes, private_key: bytes) -> tuple[int, int, int]:
    """Returns the signature ``(y_parity, r, s)`` of a 32-byte hash: RFC 6979, low s.

    Raises ValueError if the private key is 0 or not below the group order.
    """
    cdef RecoverableSignature signature
    cdef uint8_t rs[64]
    cdef int parity = 0
    cdef const uint8_t* digest = exactly(message_hash, 32, "message_hash")
    cdef const uint8_t* secret = exactly(private_key, 32, "private_key")
    if not lib.sign_recoverable(lib.context, &signature, digest, secret, NULL, NULL):
        raise ValueError("not a valid private key")
    lib.serialize_compact(lib.context, rs, &parity, &signature)
    return parity, int.from_bytes(rs[:32], "big"), int.from_bytes(rs[32:64], "big")


def public_key(private_key: bytes) -> bytes:
    """Returns the 64-byte public key (x || y) of a 32-byte private key.

    Raises ValueError if the private key is 0 or not below the group order.
    """
    cdef PublicKey key
    cdef uint8_t out[64]
    cdef const uint8_t* secret = exactly(private_key, 32, "private_key")
    if not lib.create_key(lib.context, &key, secret):
        raise ValueError("not a valid private key")
    key_bytes(out, &key)
    return out[:64]


def public_key_to_address(key: bytes) -> bytes:
    """Returns the 20-byte address of a 64-byte public key (x || y)."""
    cdef uint8_t digest[32]
    keccak256_64(digest, exactly(key, 64, "key"))
    return digest[12:32]


def public_key_address(private_key: bytes) -> bytes:
    """Returns the 20-byte address of a 32-byte private key.

    Raises ValueError if the private key is 0 or not below the group order.
    """
    return public_key_to_address(public_key(private_key))


# Self-test: the address of private key 1, and the signer recovered from its signature.
cdef bint known_answer() except -1:
    cdef bytes one = (1).to_bytes(32, "big")
    cdef bytes address = bytes.fromhex("7e5f4552091a69125d5dfcb7b8c2659029395bdf")
    parity, r, s = sign(bytes(range(32)), one)
    return (
        public_key_address(one) == address
        and recover_signer(bytes(range(32)), parity, r, s) == address
    )


bind()
if not known_answer():
    raise ImportError(
        f"libsecp256k1 inside {MODULE} gives wrong results through C: install coincurve 20 or 21",
        name=MODULE,
    )
