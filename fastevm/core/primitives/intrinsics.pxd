# Operations that Cython cannot express: 128-bit integers, carry chains, byte order, copies,
# atomics.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t


cdef extern from *:
    # Macros that Cython's own preamble defines.
    bint likely(bint condition) noexcept nogil
    bint unlikely(bint condition) noexcept nogil


cdef extern from "fastevm/core/primitives/intrinsics.h" nogil:
    # Cython treats these as 64 bits: cast both operands of a product or sum to u128, and never mix
    # in literals over 31 bits.
    ctypedef unsigned long long u128 "fe_u128"

    uint64_t bswap64 "fe_bswap64"(uint64_t x)
    int clz64 "fe_clz64"(uint64_t x)              # x != 0
    int ctz64 "fe_ctz64"(uint64_t x)              # x != 0
    int popcount32 "fe_popcount32"(uint32_t x)
    void prefetch "fe_prefetch"(const void* p)
    void prefetch_all "fe_prefetch_all"(void** records, int count)

    # Unaligned loads and stores in native byte order, or big-endian.
    uint64_t load64 "fe_load64"(const void* p)
    uint32_t load32 "fe_load32"(const void* p)
    void store64 "fe_store64"(void* p, uint64_t x)
    uint64_t load64_big "fe_load64_big"(const void* p)
    uint32_t load32_big "fe_load32_big"(const void* p)
    uint32_t load16_big "fe_load16_big"(const void* p)
    void store64_big "fe_store64_big"(void* p, uint64_t x)
    void store32_big "fe_store32_big"(void* p, uint32_t x)

    # 32 bytes as four 8-byte moves that gcc does not merge; operands may overlap.
    void copy32 "fe_copy32"(void* dst, const void* src)

    # Four limbs, least significant first; results may alias operands.
    # Return the carry or the borrow.
    bint add256 "fe_add256"(uint64_t* r, const uint64_t* a, const uint64_t* b)
    bint sub256 "fe_sub256"(uint64_t* r, const uint64_t* a, const uint64_t* b)
    bint lt256 "fe_lt256"(const uint64_t* a, const uint64_t* b)
    bint slt256 "fe_slt256"(const uint64_t* a, const uint64_t* b)
    # Requires high < divisor.
    uint64_t div128by64 "fe_div128by64"(
        uint64_t high, uint64_t low, uint64_t divisor, uint64_t* remainder
    )

    int64_t atomic_increment "fe_atomic_increment"(int64_t* p)      # returns the new value
    int64_t atomic_decrement "fe_atomic_decrement"(int64_t* p)      # returns the new value
    int64_t atomic_load "fe_atomic_load"(const int64_t* p)
    void atomic_store "fe_atomic_store"(int64_t* p, int64_t x)
    int atomic_load_int "fe_atomic_load_int"(const int* p)
    void atomic_store_int "fe_atomic_store_int"(int* p, int x)
    # A thread that observes the number sees all writes before its publication.
    void atomic_publish_int "fe_atomic_publish_int"(int* p, int x)
    int atomic_observe_int "fe_atomic_observe_int"(const int* p)
    # Replaces `old` by `new`. Returns True only on the thread that replaced it.
    bint atomic_claim_int "fe_atomic_claim_int"(int* p, int old, int new)

    # Observe, publish and claim for pointers. A claim also publishes.
    void* atomic_observe_pointer "fe_atomic_observe_pointer"(void** p)
    void atomic_publish_pointer "fe_atomic_publish_pointer"(void** p, void* x)
    bint atomic_claim_pointer "fe_atomic_claim_pointer"(void** p, void* old, void* new)
    void spin_pause "fe_spin_pause"()

    # A seed for hash tables whose keys an attacker chooses: constant within the process, unknown
    # outside it.
    uint64_t process_seed "fe_process_seed"()
