"""Validity rules of transactions, in checking order."""
from libc.stdint cimport UINT64_MAX, uint32_t, uint64_t
from libc.string cimport memset

from fastevm.core.execution.transaction.intrinsic cimport IntrinsicGas, intrinsic_gas
from fastevm.core.execution.transaction.refusals cimport refusal
from fastevm.core.execution.transaction.sender_recovery cimport authorities_are_known, sender_state_of
from fastevm.core.execution.transaction.transaction cimport Transaction, recover_now, transaction_from
from fastevm.core.execution.transaction.transaction_data cimport (
    BLOB_TX, LEGACY_TX, SENDER_KNOWN, SENDER_UNKNOWN, SET_CODE_TX, Tx,
)
from fastevm.core.execution.transaction.transaction_result cimport (
    TX_BLOB_CREATE, TX_BLOB_FEE_CAP_TOO_LOW, TX_BLOB_HASH_VERSION, TX_FEE_CAP_TOO_LOW, TX_FLOOR_GAS,
    TX_FUNDS_OVERFLOW, TX_GAS_LIMIT_TOO_HIGH, TX_INITCODE_TOO_LARGE, TX_INTRINSIC_GAS,
    TX_INVALID_SIGNATURE, TX_NO_AUTHORIZATIONS, TX_NO_BLOBS, TX_NONCE_MAX, TX_NONCE_TOO_HIGH,
    TX_NONCE_TOO_LOW, TX_NOT_RECOVERED, TX_SENDER_NOT_EOA, TX_SET_CODE_CREATE, TX_TIP_ABOVE_FEE_CAP,
    TX_TOO_MANY_BLOBS, TX_TYPE_NOT_SUPPORTED, TX_VALID, TX_WRONG_CHAIN_ID, TxError, TxOptions,
    TxResult,
)
from fastevm.core.primitives.intrinsics cimport u128
from fastevm.core.primitives.word cimport (
    Word, word_add_carry, word_copy, word_is_zero, word_lt, word_set,
)
from fastevm.core.spec.schedule cimport ForkSchedule, Schedule
from fastevm.core.state.account cimport Account


cdef enum:
    BLOB_HASH_VERSION = 0x01      # first byte of a KZG versioned hash (EIP-4844)


cdef inline TxError disagree(
    TxError error, uint64_t have, uint64_t want, TxResult* result
) noexcept nogil:
    word_set(&result.have, have)
    word_set(&result.want, want)
    return error


cdef TxError check_envelope(
    const Schedule* schedule, const Tx* tx, uint64_t chain_id, TxResult* result
) noexcept nogil:
    if tx.tx_type > schedule.max_tx_type or (
        tx.tx_type == BLOB_TX and not schedule.accepts_blobs
    ):
        return disagree(TX_TYPE_NOT_SUPPORTED, tx.tx_type, schedule.max_tx_type, result)
    if tx.has_chain_id:
        if tx.tx_type == LEGACY_TX and not schedule.has_chain_id_in_signature:
            return TX_INVALID_SIGNATURE
        if tx.chain_id != chain_id:
            return disagree(TX_WRONG_CHAIN_ID, tx.chain_id, chain_id, result)
    if sender_state_of(tx) == SENDER_UNKNOWN or not authorities_are_known(tx):
        return TX_NOT_RECOVERED
    if sender_state_of(tx) != SENDER_KNOWN or (tx.high_s and schedule.signature_low_s):
        return TX_INVALID_SIGNATURE
    return TX_VALID


# Whether a development chain executes the transaction for a sender who did not sign it (see
# `unsigned_sender`): s is 0 and r is not. In unsigned calls and simulations both are 0.
cdef inline bint is_impersonated(const Tx* tx) noexcept nogil:
    return word_is_zero(&tx.s) and not word_is_zero(&tx.r)


cdef TxError check_sender(
    const Schedule* schedule, const Tx* tx, const TxOptions* options, const Account* sender,
    TxResult* result
) noexcept nogil:
    cdef bint is_delegated
    if not options.skip_nonce:
        if tx.nonce > sender.nonce:
            return disagree(TX_NONCE_TOO_HIGH, tx.nonce, sender.nonce, result)
        if tx.nonce < sender.nonce:
            return disagree(TX_NONCE_TOO_LOW, tx.nonce, sender.nonce, result)
        if tx.nonce + 1 == 0:
            return TX_NONCE_MAX
    if (not options.skip_gas_cap and schedule.tx_gas_cap != 0 and schedule.state_gas_version == 0
            and tx.gas_limit > <uint64_t>schedule.tx_gas_cap):
        return disagree(TX_GAS_LIMIT_TOO_HIGH, tx.gas_limit, schedule.tx_gas_cap, result)
    if sender.code != NULL and not options.skip_sender_code_check:
        is_delegated = schedule.has_delegations and sender.code.is_delegation
        if not is_delegated and not is_impersonated(tx):
            return disagree(TX_SENDER_NOT_EOA, sender.code.size, 0, result)
    return TX_VALID


cdef TxError check_fees(
    const Schedule* schedule, const Word* base_fee, const Tx* tx, const TxOptions* options,
    TxResult* result
) noexcept nogil:
    if not schedule.has_base_fee or is_free(tx, options):
        return TX_VALID
    if word_lt(&tx.max_fee, &tx.max_priority_fee):
        word_copy(&result.have, &tx.max_priority_fee)
        word_copy(&result.want, &tx.max_fee)
        return TX_TIP_ABOVE_FEE_CAP
    if word_lt(&tx.max_fee, base_fee):
        word_copy(&result.have, &tx.max_fee)
        word_copy(&result.want, base_fee)
        return TX_FEE_CAP_TOO_LOW
    return TX_VALID


cdef TxError check_payload(
    const Schedule* schedule, const Word* blob_base_fee, const Tx* tx, const TxOptions* options,
    TxResult* result
) noexcept nogil:
    cdef TxError error
    if tx.tx_type == BLOB_TX:
        error = check_blobs(schedule, tx, result)
        if error != TX_VALID:
            return error
        if word_lt(&tx.max_fee_per_blob_gas, blob_base_fee):
            if not (options.fees_optional and word_is_zero(&tx.max_fee_per_blob_gas)):
                word_copy(&result.have, &tx.max_fee_per_blob_gas)
                word_copy(&result.want, blob_base_fee)
                return TX_BLOB_FEE_CAP_TOO_LOW
    if tx.tx_type == SET_CODE_TX:
        if tx.is_create:
            return TX_SET_CODE_CREATE
        if tx.authorization_count == 0:
            return TX_NO_AUTHORIZATIONS
    return check_initcode(schedule, tx, result)


cdef TxError check_blobs(const Schedule* schedule, const Tx* tx, TxResult* result) noexcept nogil:
    cdef uint64_t limit = schedule.blob_max
    cdef uint32_t i
    if schedule.blob_max_per_tx != 0 and schedule.blob_max_per_tx < limit:
        limit = schedule.blob_max_per_tx
    if tx.is_create:
        return TX_BLOB_CREATE
    if tx.blob_count == 0:
        return TX_NO_BLOBS
    if tx.blob_count > limit:
        return disagree(TX_TOO_MANY_BLOBS, tx.blob_count, limit, result)
    for i in range(tx.blob_count):
        if tx.blob_hashes[i].b[0] != BLOB_HASH_VERSION:
            return disagree(TX_BLOB_HASH_VERSION, i, 0, result)
    return TX_VALID


cdef TxError check_initcode(
    const Schedule* schedule, const Tx* tx, TxResult* result
) noexcept nogil:
    cdef size_t limit = <size_t>schedule.max_initcode_size
    if tx.is_create and limit != 0 and tx.size > limit:
        return disagree(TX_INITCODE_TOO_LARGE, tx.size, limit, result)
    return TX_VALID


cdef TxError check_gas(
    const Tx* tx, const IntrinsicGas* intrinsic, TxResult* result
) noexcept nogil:
    cdef uint64_t gas = intrinsic.gas + intrinsic.state
    if gas < intrinsic.state:
        gas = UINT64_MAX
    if tx.gas_limit < gas:
        return disagree(TX_INTRINSIC_GAS, tx.gas_limit, gas, result)
    if tx.gas_limit < intrinsic.floor:
        return disagree(TX_FLOOR_GAS, tx.gas_limit, intrinsic.floor, result)
    return TX_VALID


# A fork caps the gas limit (`tx_total_gas_cap`), or the part that must be regular gas
# (`tx_gas_cap`).
cdef TxError check_gas_caps(
    const Schedule* schedule, const Tx* tx, const IntrinsicGas* intrinsic, TxResult* result
) noexcept nogil:
    cdef uint64_t total = <uint64_t>schedule.tx_total_gas_cap, cap = <uint64_t>schedule.tx_gas_cap
    cdef uint64_t least = max(intrinsic.gas, intrinsic.floor)
    if total != 0 and tx.gas_limit > total:
        return disagree(TX_GAS_LIMIT_TOO_HIGH, tx.gas_limit, total, result)
    if cap != 0 and least > cap:
        return disagree(TX_GAS_LIMIT_TOO_HIGH, least, cap, result)
    return TX_VALID


cdef bint word_times(Word* r, const Word* a, uint64_t b) noexcept nogil:
    cdef u128 t
    cdef uint64_t carry = 0
    cdef int i
    for i in range(4):
        t = <u128>a.d[i] * <u128>b + <u128>carry
        r.d[i] = <uint64_t>t
        carry = <uint64_t>(t >> 64)
    return carry == 0


cdef bint highest_cost(const Schedule* schedule, const Tx* tx, Word* out) noexcept nogil:
    cdef Word blobs
    if not word_times(out, &tx.max_fee, tx.gas_limit) or word_add_carry(out, out, &tx.value):
        return False
    if tx.blob_count == 0:
        return True
    if not word_times(&blobs, &tx.max_fee_per_blob_gas, tx.blob_count * schedule.blob_gas_per_blob):
        return False
    return not word_add_carry(out, out, &blobs)


# --- rules that need no state ---

cdef TxError check_stateless(
    const Schedule* schedule, const Tx* tx, uint64_t chain_id, IntrinsicGas* intrinsic,
    TxResult* result
) noexcept nogil:
    cdef Account unlimited       # an account that passes every rule
    cdef TxOptions options
    cdef Word zero, cost
    cdef TxError error = check_envelope(schedule, tx, chain_id, result)
    memset(&unlimited, 0, sizeof(unlimited))
    memset(&options, 0, sizeof(options))
    memset(&zero, 0, sizeof(zero))
    unlimited.nonce = tx.nonce
    if error == TX_VALID:
        error = check_sender(schedule, tx, &options, &unlimited, result)
    if error == TX_VALID:
        error = check_fees(schedule, &zero, tx, &options, result)
    if error == TX_VALID:
        error = check_payload(schedule, &zero, tx, &options, result)
    # A sum of gas cost and value over 256 bits is refused by the balance check only; a product over
    # 256 bits is always refused.
    if error == TX_VALID and not word_times(&cost, &tx.max_fee, tx.gas_limit):
        error = TX_FUNDS_OVERFLOW
    if error == TX_VALID:
        intrinsic_gas(schedule, tx, intrinsic)
        error = check_gas(tx, intrinsic, result)
    if error == TX_VALID and schedule.state_gas_version != 0:
        error = check_gas_caps(schedule, tx, intrinsic, result)
    return error


def check_transaction(transaction, schedule, *, chain_id=1):
    """Checks a transaction against every rule that needs neither state nor block.

    Returns (intrinsic gas, calldata floor). Neither exceeds the gas limit. Raises
    `InvalidTransaction`.
    """
    cdef Transaction t = <Transaction?>transaction
    cdef ForkSchedule rules = <ForkSchedule?>schedule
    cdef IntrinsicGas intrinsic
    cdef TxResult result
    cdef TxError error
    memset(&intrinsic, 0, sizeof(intrinsic))
    recover_now(t)  # the sender, unless it is known, and the authorities
    memset(&result, 0, sizeof(result))
    error = check_stateless(&rules.c, &t.c, chain_id, &intrinsic, &result)
    if error != TX_VALID:
        raise refusal(error, &t.c, &result)
    return intrinsic.gas, intrinsic.floor


def validate_transaction(raw, schedule, chain_id=1):
    """Decodes canonical bytes and checks them without a state.

    Returns (hash, sender, intrinsic gas). Raises `TransactionDecodeError` or `InvalidTransaction`.
    """
    transaction = transaction_from(bytes(raw))
    gas, _ = check_transaction(transaction, schedule, chain_id=chain_id)
    return transaction.hash, transaction.sender, gas


def intrinsic_gas_of(transaction, schedule):
    """Returns (intrinsic gas, calldata floor) of a transaction in a fork. A floor of 0 means that
    the fork has no such rule.
    """
    cdef IntrinsicGas intrinsic
    memset(&intrinsic, 0, sizeof(intrinsic))
    intrinsic_gas(&(<ForkSchedule?>schedule).c, &(<Transaction?>transaction).c, &intrinsic)
    return intrinsic.gas, intrinsic.floor
