# The fields of a transaction as C data, for every type of envelope.
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.word cimport Word


cdef enum TxType:
    LEGACY_TX = 0
    ACCESS_LIST_TX = 1
    DYNAMIC_FEE_TX = 2
    BLOB_TX = 3
    SET_CODE_TX = 4
    ARBITRUM_DEPOSIT_TX = 0x64   # the types of Arbitrum up to 0x6a are not signed
    ARBITRUM_UNSIGNED_TX = 0x65
    ARBITRUM_CONTRACT_TX = 0x66
    ARBITRUM_RETRY_TX = 0x68
    ARBITRUM_SUBMIT_TX = 0x69
    ARBITRUM_INTERNAL_TX = 0x6a
    POST_EXEC_TX = 0x7d       # gas refunds, last in a block of the OP stack; not signed
    DEPOSIT_TX = 0x7e         # from L1, on chains of the OP stack; not signed


cdef enum SenderState:
    SENDER_UNKNOWN = 0        # not recovered yet
    SENDER_KNOWN = 1
    SENDER_BAD_VALUES = 2     # v, r or s out of range
    SENDER_NO_KEY = 3         # in range, but no public key matches
    SENDER_WRITING = 4        # a thread is storing the sender; only sender_state_of sees this value


cdef struct AccessEntry:
    Address address
    uint32_t slot_count       # the entry's slots follow those of earlier entries


cdef struct Authorization:
    Word chain_id             # 0 = any chain
    Address address           # the delegate; zero removes the delegation
    uint64_t nonce
    int y_parity              # any 8-bit value decodes; only 0 and 1 can be recovered
    Word r
    Word s
    bint has_authority        # the signature is in range, low-s and recoverable
    Address authority


cdef struct Tx:
    uint32_t tx_type
    bint is_create            # `to` is empty
    uint64_t nonce
    uint64_t gas_limit
    Word max_fee              # wei per gas; the gas price of types 0 and 1
    Word max_priority_fee     # wei per gas; the gas price of types 0 and 1
    Address to
    Word value
    const uint8_t* data
    size_t size
    # --- flat arrays, NULL when empty ---
    AccessEntry* access
    Word* access_slots
    Hash* blob_hashes
    Authorization* authorizations
    uint32_t access_count
    uint32_t access_slot_count
    uint32_t blob_count
    uint32_t authorization_count
    Word max_fee_per_blob_gas
    # --- fields of a deposit: `from` is `sender`; nonce and prices are zero ---
    Hash source_hash          # Arbitrum: the id of the request or of the retryable ticket
    Word mint                 # wei
    bint is_system
    # --- signature ---
    bint has_chain_id         # false for unprotected legacy transactions
    uint64_t chain_id
    Word v                    # as encoded; for types 1 to 4 the y parity
    Word r
    Word s
    int y_parity              # -1: v is invalid for this type
    bint high_s               # s is above half the group order
    bint authorities_known    # the authorities are recovered, or there are no authorizations
    SenderState sender_state
    Address sender
    # --- memory ---
    const uint8_t* raw        # the canonical envelope, borrowed
    size_t raw_size
    size_t fields_start       # offset of the first field, after type byte and list header
    size_t signature_start    # offset of v; the bytes from fields_start to here are signed
    void* arrays              # owns the flat arrays


cdef inline bint is_arbitrum_type(uint32_t kind) noexcept nogil:
    return ARBITRUM_DEPOSIT_TX <= kind <= ARBITRUM_INTERNAL_TX and kind != 0x67
