"""ArbGasInfo: the prices of L2 gas and of L1 data."""

from libc.stdint cimport UINT64_MAX, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.native.arbitrum.addresses cimport ARB_GAS_INFO
from fastevm.core.native.arbitrum.context cimport (
    SLOT_WRITE, VIEW, Argument, Context, add, add_slot, give, give_number, load_at, load_number,
)
from fastevm.core.native.arbitrum.storage cimport (
    CONSTRAINTS, L1_PRICING, L2_PRICING, MULTI_GAS_CONSTRAINTS, MULTI_GAS_FEES, POSTERS, Space,
    child_space,
)
from fastevm.core.native.call cimport native_account
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.intrinsics cimport store64_big
from fastevm.core.primitives.word cimport (
    Word, word_copy, word_is_zero, word_lt, word_mul, word_set, word_sub,
)
from fastevm.core.primitives.word_division cimport word_div
from fastevm.core.state.account cimport Account


cdef enum:
    # Slots of the L1 pricing space.
    PAY_REWARDS_TO = 0x00
    EQUILIBRATION_UNITS = 0x01
    L1_INERTIA = 0x02
    PER_UNIT_REWARD = 0x03
    LAST_UPDATE_TIME = 0x04
    FUNDS_DUE_FOR_REWARDS = 0x05
    UNITS_SINCE_UPDATE = 0x06
    PRICE_PER_UNIT = 0x07
    LAST_SURPLUS = 0x08
    PER_BATCH_GAS = 0x09
    CAP_BIPS = 0x0a
    L1_FEES_AVAILABLE = 0x0b
    # Slots of the L2 pricing space.
    SPEED_LIMIT = 0x00
    BLOCK_GAS_LIMIT = 0x01
    BASE_FEE = 0x02           # base fee of the next block
    MINIMUM_BASE_FEE = 0x03
    BACKLOG = 0x04
    L2_INERTIA = 0x05
    TOLERANCE = 0x06
    TX_GAS_LIMIT = 0x07
    CALLDATA_GAS = 16         # gas of a nonzero calldata byte on L1
    SIMPLE_TX_BYTES = 140
    # Slots of a constraint, and of its weights.
    TARGET = 0
    WINDOW = 1
    CONSTRAINT_BACKLOG = 2
    WEIGHTS = 4
    KINDS = 9                 # number of gas kinds (multi-dimensional pricing)
    SINGLE_DIMENSION = 6      # the kind of gas that has no price of its own
    CURRENT_FEES = 9

cdef Address L1_POOL


cdef void times(Word* out, const Word* word, uint64_t factor) noexcept nogil:
    cdef Word other
    word_set(&other, factor)
    word_mul(out, word, &other)


cdef bint prices_in_wei(Context* c, const Argument* a) noexcept nogil:
    cdef const Word* base_fee = c.call.base_fee
    cdef Word unit, calldata, simple, storage, least, congestion
    if not (
        load_at(c, &L1_PRICING, PRICE_PER_UNIT, &unit)
        and load_at(c, &L2_PRICING, MINIMUM_BASE_FEE, &least)
    ):
        return False
    times(&calldata, &unit, CALLDATA_GAS)
    times(&simple, &calldata, SIMPLE_TX_BYTES)
    times(&storage, base_fee, SLOT_WRITE)
    if word_lt(base_fee, &least):
        word_copy(&least, base_fee)
    word_sub(&congestion, base_fee, &least)
    return (
        give(c, &simple) and give(c, &calldata) and give(c, &storage) and give(c, &least)
        and give(c, &congestion) and give(c, base_fee)
    )


cdef bint prices_in_gas(Context* c, const Argument* a) noexcept nogil:
    cdef const Word* base_fee = c.call.base_fee
    cdef Word calldata, simple
    if not load_at(c, &L1_PRICING, PRICE_PER_UNIT, &calldata):
        return False
    times(&calldata, &calldata, CALLDATA_GAS)
    times(&simple, &calldata, SIMPLE_TX_BYTES)
    word_div(&calldata, &calldata, base_fee)  # 0 without a base fee
    word_div(&simple, &simple, base_fee)
    return give(c, &simple) and give(c, &calldata) and give_number(c, SLOT_WRITE)


cdef bint gas_accounting_params(Context* c, const Argument* a) noexcept nogil:
    cdef Word speed, limit
    return (
        load_at(c, &L2_PRICING, SPEED_LIMIT, &speed)
        and load_at(c, &L2_PRICING, BLOCK_GAS_LIMIT, &limit)
        and give(c, &speed) and give(c, &limit) and give(c, &limit)
    )


cdef bint current_tx_l1_gas_fees(Context* c, const Argument* a) noexcept nogil:
    return give_number(c, 0) if c.call.l1_fee == NULL else give(c, c.call.l1_fee)


# Loads the funds for L1 data. Before version 10 they were the balance of an account.
cdef bint load_l1_funds(Context* c, Word* out) noexcept nogil:
    cdef Account* pool
    if c.version >= 10:
        return load_at(c, &L1_PRICING, L1_FEES_AVAILABLE, out)
    pool = native_account(c.call, &L1_POOL)
    if pool == NULL:
        return False
    pool.balance_seen = True
    word_copy(out, &pool.balance)
    return True


cdef bint l1_pricing_surplus(Context* c, const Argument* a) noexcept nogil:
    cdef Word due, rewards, funds
    if not (
        load_at(c, &POSTERS, 0, &due)
        and load_at(c, &L1_PRICING, FUNDS_DUE_FOR_REWARDS, &rewards)
        and load_l1_funds(c, &funds)
    ):
        return False
    word_sub(&funds, &funds, &due)
    word_sub(&funds, &funds, &rewards)
    return give(c, &funds)


# Returns a signed 64-bit number.
cdef bint per_batch_gas_charge(Context* c, const Argument* a) noexcept nogil:
    cdef Word word
    if not load_at(c, &L1_PRICING, PER_BATCH_GAS, &word):
        return False
    if <int64_t>word.d[0] < 0:
        word.d[1] = word.d[2] = word.d[3] = UINT64_MAX
    return give(c, &word)


# Opens the space of an element of a vector.
cdef void element(Space* out, const Space* vector, uint64_t index) noexcept nogil:
    cdef uint8_t id[8]
    store64_big(id, index)
    child_space(out, vector, id, 8)


cdef bint gas_pricing_constraints(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t count = 0, i, number = 0
    cdef int field
    cdef Space space
    memset(&space, 0, sizeof(space))
    if not (
        load_number(c, &CONSTRAINTS, 0, &count) and give_number(c, 32) and give_number(c, count)
    ):
        return False
    for i in range(count):
        element(&space, &CONSTRAINTS, i)
        for field in range(TARGET, CONSTRAINT_BACKLOG + 1):
            if not (load_number(c, &space, field, &number) and give_number(c, number)):
                return False
    return True


# Returns a constraint on several kinds of gas: the offset of its weights, three numbers, the
# weights.
cdef bint give_constraint(Context* c, const Space* space) noexcept nogil:
    cdef uint64_t weights[KINDS]
    cdef uint64_t target = 0, window = 0, backlog = 0, count = 0
    cdef int kind
    if not (
        load_number(c, space, TARGET, &target) and load_number(c, space, WINDOW, &window)
        and load_number(c, space, CONSTRAINT_BACKLOG, &backlog)
    ):
        return False
    for kind in range(KINDS):
        weights[kind] = 0
        if not load_number(c, space, WEIGHTS + kind, &weights[kind]):
            return False
        count += weights[kind] != 0
    if not (
        give_number(c, 4 * 32) and give_number(c, window) and give_number(c, target)
        and give_number(c, backlog) and give_number(c, count)
    ):
        return False
    for kind in range(KINDS):
        if weights[kind] != 0 and not (give_number(c, kind) and give_number(c, weights[kind])):
            return False
    return True


cdef bint multi_gas_pricing_constraints(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t count = 0, i, _i
    cdef size_t start, at
    cdef Space space
    memset(&space, 0, sizeof(space))
    if not (
        load_number(c, &MULTI_GAS_CONSTRAINTS, 0, &count)
        and give_number(c, 32) and give_number(c, count)
    ):
        return False
    start = c.call.output.size
    for _i in range(count):
        if not give_number(c, 0):
            return False
    for i in range(count):
        at = c.call.output.size - start
        store64_big(c.call.output.bytes + start + 32 * i + 24, at)
        element(&space, &MULTI_GAS_CONSTRAINTS, i)
        if not give_constraint(c, &space):
            return False
    return True


cdef bint multi_gas_base_fee(Context* c, const Argument* a) noexcept nogil:
    cdef Word highest, fee
    cdef int kind
    if not (
        load_at(c, &L2_PRICING, BASE_FEE, &highest) and give_number(c, 32) and give_number(c, KINDS)
    ):
        return False
    for kind in range(KINDS):
        if not load_at(c, &MULTI_GAS_FEES, CURRENT_FEES + kind, &fee):
            return False
        if kind == SINGLE_DIMENSION or word_is_zero(&fee):
            word_copy(&fee, &highest)
        if not give(c, &fee):
            return False
    return True


cdef bytes pool = bytes.fromhex("a4b00000000000000000000000000000000000f6")
memcpy(L1_POOL.b, <const char*>pool, 20)

add(ARB_GAS_INFO, 1, VIEW, b"getPricesInWeiWithAggregator(address)", prices_in_wei)
add(ARB_GAS_INFO, 1, VIEW, b"getPricesInWei()", prices_in_wei)
add(ARB_GAS_INFO, 1, VIEW, b"getPricesInArbGasWithAggregator(address)", prices_in_gas)
add(ARB_GAS_INFO, 1, VIEW, b"getPricesInArbGas()", prices_in_gas)
add(ARB_GAS_INFO, 1, VIEW, b"getGasAccountingParams()", gas_accounting_params)
add_slot(ARB_GAS_INFO, 1, b"getMinimumGasPrice()", &L2_PRICING, MINIMUM_BASE_FEE)
add_slot(ARB_GAS_INFO, 1, b"getL1BaseFeeEstimate()", &L1_PRICING, PRICE_PER_UNIT)
add_slot(ARB_GAS_INFO, 1, b"getL1BaseFeeEstimateInertia()", &L1_PRICING, L1_INERTIA)
add_slot(ARB_GAS_INFO, 1, b"getL1GasPriceEstimate()", &L1_PRICING, PRICE_PER_UNIT)
add(ARB_GAS_INFO, 1, VIEW, b"getCurrentTxL1GasFees()", current_tx_l1_gas_fees)
add_slot(ARB_GAS_INFO, 1, b"getGasBacklog()", &L2_PRICING, BACKLOG)
add_slot(ARB_GAS_INFO, 1, b"getPricingInertia()", &L2_PRICING, L2_INERTIA)
add_slot(ARB_GAS_INFO, 1, b"getGasBacklogTolerance()", &L2_PRICING, TOLERANCE)
add(ARB_GAS_INFO, 1, VIEW, b"getL1PricingSurplus()", l1_pricing_surplus)
add(ARB_GAS_INFO, 1, VIEW, b"getPerBatchGasCharge()", per_batch_gas_charge)
add_slot(ARB_GAS_INFO, 1, b"getAmortizedCostCapBips()", &L1_PRICING, CAP_BIPS)
add_slot(ARB_GAS_INFO, 10, b"getL1FeesAvailable()", &L1_PRICING, L1_FEES_AVAILABLE)
add_slot(ARB_GAS_INFO, 11, b"getL1RewardRate()", &L1_PRICING, PER_UNIT_REWARD)
add_slot(ARB_GAS_INFO, 11, b"getL1RewardRecipient()", &L1_PRICING, PAY_REWARDS_TO)
add_slot(ARB_GAS_INFO, 20, b"getL1PricingEquilibrationUnits()", &L1_PRICING, EQUILIBRATION_UNITS)
add_slot(ARB_GAS_INFO, 20, b"getLastL1PricingUpdateTime()", &L1_PRICING, LAST_UPDATE_TIME)
add_slot(ARB_GAS_INFO, 20, b"getL1PricingFundsDueForRewards()", &L1_PRICING, FUNDS_DUE_FOR_REWARDS)
add_slot(ARB_GAS_INFO, 20, b"getL1PricingUnitsSinceUpdate()", &L1_PRICING, UNITS_SINCE_UPDATE)
add_slot(ARB_GAS_INFO, 20, b"getLastL1PricingSurplus()", &L1_PRICING, LAST_SURPLUS)
add_slot(ARB_GAS_INFO, 50, b"getMaxTxGasLimit()", &L2_PRICING, TX_GAS_LIMIT)
add_slot(ARB_GAS_INFO, 50, b"getMaxBlockGasLimit()", &L2_PRICING, BLOCK_GAS_LIMIT)
add(ARB_GAS_INFO, 50, VIEW, b"getGasPricingConstraints()", gas_pricing_constraints)
add(ARB_GAS_INFO, 60, VIEW, b"getMultiGasPricingConstraints()", multi_gas_pricing_constraints)
add(ARB_GAS_INFO, 60, VIEW, b"getMultiGasBaseFee()", multi_gas_base_fee)
