# Options and result of `transact`: why a transaction was refused, or what it did.
from libc.stdint cimport int64_t, uint32_t, uint64_t

from fastevm.core.interpreter.status cimport Status
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word


# A value for each validity rule, in checking order, and for failures of the host or the machine.
cdef enum TxError:
    TX_VALID = 0
    # --- the envelope ---
    TX_TYPE_NOT_SUPPORTED = 1
    TX_WRONG_CHAIN_ID = 2
    TX_INVALID_SIGNATURE = 3
    TX_NOT_RECOVERED = 4          # the caller did not recover the sender
    # --- the sender ---
    TX_NONCE_TOO_HIGH = 5
    TX_NONCE_TOO_LOW = 6
    TX_NONCE_MAX = 7
    TX_GAS_LIMIT_TOO_HIGH = 8
    TX_SENDER_NOT_EOA = 9
    # --- fees ---
    TX_TIP_ABOVE_FEE_CAP = 10
    TX_FEE_CAP_TOO_LOW = 11
    # --- blobs and authorizations ---
    TX_BLOB_CREATE = 12
    TX_NO_BLOBS = 13
    TX_TOO_MANY_BLOBS = 14
    TX_BLOB_HASH_VERSION = 15
    TX_BLOB_FEE_CAP_TOO_LOW = 16
    TX_SET_CODE_CREATE = 17
    TX_NO_AUTHORIZATIONS = 18
    # --- gas and funds ---
    TX_INITCODE_TOO_LARGE = 19
    TX_BLOCK_GAS = 20
    TX_INSUFFICIENT_FUNDS = 21
    TX_FUNDS_OVERFLOW = 22        # the cost does not fit into 256 bits
    TX_INTRINSIC_GAS = 23
    TX_FLOOR_GAS = 24
    TX_DA_FOOTPRINT = 25          # the block's DA footprint would be too high (OP stack, Jovian)
    TX_POST_EXEC_REFUND = 26      # the block refunds more gas than was used (Lagoon)
    # --- no rule was broken; everything is rolled back, except with TX_PAUSED ---
    TX_NEEDS_STATE = 40           # see world.need
    TX_PAUSED = 41                # see run.pause; only from transact_run
    TX_CANCELLED = 42
    TX_OUT_OF_MEMORY = 43
    TX_UNSUPPORTED = 44           # see result.refused


# Rules that a simulation skips. All false for a transaction of a block.
cdef struct TxOptions:
    bint skip_nonce               # any nonce is valid; the account's nonce still increases
    bint skip_sender_code_check   # EIP-3607
    bint skip_gas_cap             # EIP-7825
    bint skip_block_gas
    bint skip_balance             # no payment for gas; the sender gets the wei it lacks for `value`
    # If both fee caps are zero: no base fee rule and no payment. If the blob fee cap is zero: no
    # blob fee.
    bint fees_optional
    bint no_coinbase_payment
    uint64_t post_exec_refund     # gas that the block refunds (OP stack, Lagoon)
    uint64_t block_state_gas      # state gas of the block's earlier transactions
    bint skip_l1_fee              # neither the L1 data fee nor the operator fee (OP stack)


cdef struct TxResult:
    TxError error
    # --- results of an executed transaction ---
    Status status
    uint64_t gas_used             # gas paid for
    uint64_t gas_before_refund    # peak gas use, at least the floor
    uint64_t gas_refunded
    uint64_t block_gas            # regular gas counted by the block, in forks with state gas
    uint64_t block_state_gas      # state gas counted by the block
    uint64_t needs_regular_gas    # regular gas that the block must have left, in forks with state gas
    uint64_t needs_state_gas      # state gas that the block must have left
    uint64_t blob_gas_used        # from Jovian on, the transaction's part of the DA footprint
    uint64_t deposit_nonce        # nonce of a deposit's sender before the deposit
    Word effective_price          # wei per gas
    size_t first_log              # index into world.logs
    size_t log_count
    bint has_created              # the transaction is a creation, successful or not
    Address created
    # --- of a refused transaction: the two values that the rule compares ---
    Word have
    Word want
    # --- with TX_UNSUPPORTED: what is not supported, and the contract ---
    const char* refused
    Address refused_at
