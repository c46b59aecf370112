"""ArbOwnerPublic, ArbOwner, ArbAggregator, ArbRetryableTx and the managers of tokens and filters."""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.native.arbitrum.addresses cimport (
    ARB_AGGREGATOR, ARB_FILTERED_TRANSACTIONS_MANAGER, ARB_NATIVE_TOKEN_MANAGER, ARB_OWNER,
    ARB_OWNER_PUBLIC, ARB_RETRYABLE_TX,
)
from fastevm.core.native.arbitrum.context cimport (
    VIEW, WRITE, Argument, Context, add, add_refused, add_slot, add_unread, burn_all, charge, fail,
    fail_named, give, give_address, give_members, give_number, is_member, load_at, load_free,
    load_number,
)
from fastevm.core.native.arbitrum.storage cimport (
    FEATURES, FILTERERS, L1_PRICING, NATIVE_TOKEN_OWNERS, OWNERS, POSTER_INFO, POSTER_SET,
    RETRYABLES, ROOT, STYLUS_PARAMETERS, Space, child_space,
)
from fastevm.core.native.call cimport native_refuse
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport (
    Word, word_from_address, word_store, word_to_address,
)


cdef enum:
    # Slots of the root space.
    UPGRADE_VERSION = 0x01
    UPGRADE_TIME = 0x02
    NETWORK_FEE_ACCOUNT = 0x03
    INFRA_FEE_ACCOUNT = 0x06
    BROTLI_LEVEL = 0x07
    NATIVE_TOKEN_FROM = 0x08
    FILTERING_FROM = 0x09
    FILTERED_FUNDS_RECIPIENT = 0x0a
    COLLECT_TIPS = 0x0b
    GAS_FLOOR_PER_TOKEN = 0x0c  # slot of the L1 pricing space
    # Slots of a retryable ticket.
    BENEFICIARY = 4
    TIMEOUT = 5
    WINDOWS_LEFT = 6
    WEEK = 604_800            # seconds until a ticket expires, and of each extension
    PAY_TO = 1                # slot of a batch poster
    PARAMETERS_GAS = 100
    FRAGMENTS_AT = 29         # byte index in the parameters of Stylus
    NO_TICKET = 0x80698456u   # NoTicketWithID()
    NOT_CALLABLE = 0x902824c1u

cdef Address SEQUENCER


# --- owners ---

cdef bint give_whether_member(Context* c, const Space* set, const Argument* a) noexcept nogil:
    cdef bint found = False
    return is_member(c, set, &a.word, &found) and give_number(c, found)


cdef bint is_chain_owner(Context* c, const Argument* a) noexcept nogil:
    return give_whether_member(c, &OWNERS, a)


cdef bint all_chain_owners(Context* c, const Argument* a) noexcept nogil:
    return give_members(c, &OWNERS)


cdef bint is_native_token_owner(Context* c, const Argument* a) noexcept nogil:
    return give_whether_member(c, &NATIVE_TOKEN_OWNERS, a)


cdef bint all_native_token_owners(Context* c, const Argument* a) noexcept nogil:
    return give_members(c, &NATIVE_TOKEN_OWNERS)


cdef bint is_filterer(Context* c, const Argument* a) noexcept nogil:
    return give_whether_member(c, &FILTERERS, a)


cdef bint all_filterers(Context* c, const Argument* a) noexcept nogil:
    return give_members(c, &FILTERERS)


cdef bint infra_fee_account(Context* c, const Argument* a) noexcept nogil:
    cdef Word word
    cdef uint64_t slot = INFRA_FEE_ACCOUNT if c.version >= 6 else NETWORK_FEE_ACCOUNT
    return load_at(c, &ROOT, slot, &word) and give(c, &word)


cdef bint scheduled_upgrade(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t version = 0, time = 0
    if not (
        load_number(c, &ROOT, UPGRADE_VERSION, &version)
        and load_number(c, &ROOT, UPGRADE_TIME, &time)
    ):
        return False
    if <uint64_t>c.version >= version:
        version = time = 0
    return give_number(c, version) and give_number(c, time)


cdef bint has_calldata_floor(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t features = 0
    return load_number(c, &FEATURES, 0, &features) and give_number(c, features & 1)


cdef bint fragment_limit(Context* c, const Argument* a) noexcept nogil:
    cdef uint8_t bytes[32]
    cdef Word word
    if not (charge(c, PARAMETERS_GAS) and load_free(c, &STYLUS_PARAMETERS, 0, &word)):
        return False
    word_store(bytes, &word)
    return give_number(c, bytes[FRAGMENTS_AT])


# --- batch posters ---

cdef bint preferred_aggregator(Context* c, const Argument* a) noexcept nogil:
    return give_address(c, &SEQUENCER) and give_number(c, 1)


cdef bint default_aggregator(Context* c, const Argument* a) noexcept nogil:
    return give_address(c, &SEQUENCER)


cdef bint batch_posters(Context* c, const Argument* a) noexcept nogil:
    return give_members(c, &POSTER_SET)


cdef bint fee_collector(Context* c, const Argument* a) noexcept nogil:
    cdef bint found = False
    cdef Address address
    cdef Space info
    cdef Word word
    memset(&info, 0, sizeof(info))
    if not is_member(c, &POSTER_SET, &a[0].word, &found):
        return False
    if not found:
        return fail(c)
    word_to_address(&address, &a[0].word)
    child_space(&info, &POSTER_INFO, address.b, 20)
    return load_at(c, &info, PAY_TO, &word) and give(c, &word)


cdef bint give_zero(Context* c, const Argument* a) noexcept nogil:
    return give_number(c, 0)


cdef bint do_nothing(Context* c, const Argument* a) noexcept nogil:
    return True


cdef bint caller_is_member(Context* c, const Space* set, bint* out) noexcept nogil:
    cdef Word caller
    word_from_address(&caller, &c.call.caller)
    return is_member(c, set, &caller, out)


cdef bint change_posters(Context* c, const Argument* a) noexcept nogil:
    cdef bint is_owner = False
    if not caller_is_member(c, &OWNERS, &is_owner):
        return False
    if not is_owner:
        return fail(c)
    return native_refuse(
        c.call, b"ArbAggregator: changes of batch posters are not supported on a fork"
    )


# --- tickets for messages from L1 ---

# Opens the space of a ticket that has not expired; `exists` is False if there is none. Since
# version 60, extensions postpone the expiry.
cdef bint open_ticket(
    Context* c, const Argument* a, Space* out, uint64_t* timeout, bint* exists
) noexcept nogil:
    cdef uint8_t id[32]
    cdef uint64_t windows = 0
    word_store(id, &a.word)
    child_space(out, &RETRYABLES, id, 32)
    if not load_number(c, out, TIMEOUT, timeout):
        return False
    exists[0] = timeout[0] != 0
    if timeout[0] != 0 and c.version >= 60:
        if not load_number(c, out, WINDOWS_LEFT, &windows):
            return False
    if timeout[0] + windows * WEEK < c.call.timestamp:
        exists[0] = False
    return True


cdef bint timeout_of(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t timeout = 0, windows = 0
    cdef bint exists = False
    cdef Space ticket
    memset(&ticket, 0, sizeof(ticket))
    if not open_ticket(c, &a[0], &ticket, &timeout, &exists):
        return False
    if not exists:
        return fail_named(c, NO_TICKET)
    return (
        load_number(c, &ticket, TIMEOUT, &timeout)
        and load_number(c, &ticket, WINDOWS_LEFT, &windows)
        and give_number(c, timeout + windows * WEEK)
    )


cdef bint beneficiary_of(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t timeout = 0
    cdef bint exists = False
    cdef Space ticket
    cdef Word word
    memset(&ticket, 0, sizeof(ticket))
    if not open_ticket(c, &a[0], &ticket, &timeout, &exists):
        return False
    if not exists:
        return fail_named(c, NO_TICKET)
    return load_at(c, &ticket, BENEFICIARY, &word) and give(c, &word)


cdef bint lifetime(Context* c, const Argument* a) noexcept nogil:
    return give_number(c, WEEK)


cdef bint not_callable(Context* c, const Argument* a) noexcept nogil:
    return fail_named(c, NOT_CALLABLE)


cdef bint change_ticket(Context* c, const Argument* a, const char* reason) noexcept nogil:
    cdef uint64_t timeout = 0
    cdef bint exists = False
    cdef Space ticket
    memset(&ticket, 0, sizeof(ticket))
    if not open_ticket(c, &a[0], &ticket, &timeout, &exists):
        return False
    return native_refuse(c.call, reason) if exists else fail_named(c, NO_TICKET)


cdef bint redeem(Context* c, const Argument* a) noexcept nogil:
    return change_ticket(
        c, a, b"ArbRetryableTx.redeem(bytes32) is not supported: retries do not run on a fork"
    )


cdef bint keepalive(Context* c, const Argument* a) noexcept nogil:
    return change_ticket(
        c, a, b"ArbRetryableTx.keepalive(bytes32) is not supported: tickets do not change on a fork"
    )


cdef bint cancel(Context* c, const Argument* a) noexcept nogil:
    return change_ticket(
        c, a, b"ArbRetryableTx.cancel(bytes32) is not supported: tickets do not change on a fork"
    )


# --- tokens and filters: their owners only ---

cdef bint change_tokens(Context* c, const Argument* a) noexcept nogil:
    cdef bint found = False
    if not caller_is_member(c, &NATIVE_TOKEN_OWNERS, &found):
        return False
    if not found:
        return burn_all(c)
    return native_refuse(
        c.call, b"ArbNativeTokenManager: minting and burning are not supported on a fork"
    )


cdef bint change_filters(Context* c, const Argument* a) noexcept nogil:
    cdef bint found = False
    if not caller_is_member(c, &FILTERERS, &found):
        return False
    if not found:
        return burn_all(c)
    return native_refuse(
        c.call,
        b"ArbFilteredTransactionsManager: filtering transactions is not supported on a fork",
    )


cdef bytes sequencer = bytes.fromhex("a4b000000000000000000073657175656e636572")
memcpy(SEQUENCER.b, <const char*>sequencer, 20)

for contract in (ARB_OWNER_PUBLIC, ARB_OWNER):
    add(contract, 1, VIEW, b"isChainOwner(address)", is_chain_owner)
    add(contract, 1, VIEW, b"getAllChainOwners()", all_chain_owners)
    add_slot(contract, 1, b"getNetworkFeeAccount()", &ROOT, NETWORK_FEE_ACCOUNT)
    add(contract, 5, VIEW, b"getInfraFeeAccount()", infra_fee_account)
    add(contract, 41, VIEW, b"isNativeTokenOwner(address)", is_native_token_owner)
    add(contract, 41, VIEW, b"getAllNativeTokenOwners()", all_native_token_owners)
    add(contract, 60, VIEW, b"isTransactionFilterer(address)", is_filterer)
    add(contract, 60, VIEW, b"getAllTransactionFilterers()", all_filterers)
    add_slot(contract, 60, b"getFilteredFundsRecipient()", &ROOT, FILTERED_FUNDS_RECIPIENT)
add(ARB_OWNER_PUBLIC, 20, VIEW, b"getScheduledUpgrade()", scheduled_upgrade)
add_slot(ARB_OWNER_PUBLIC, 20, b"getBrotliCompressionLevel()", &ROOT, BROTLI_LEVEL)
add(ARB_OWNER_PUBLIC, 40, VIEW, b"isCalldataPriceIncreaseEnabled()", has_calldata_floor)
add_slot(ARB_OWNER_PUBLIC, 50, b"getNativeTokenManagementFrom()", &ROOT, NATIVE_TOKEN_FROM)
add_slot(ARB_OWNER_PUBLIC, 50, b"getParentGasFloorPerToken()", &L1_PRICING, GAS_FLOOR_PER_TOKEN)
add_slot(ARB_OWNER_PUBLIC, 60, b"getTransactionFilteringFrom()", &ROOT, FILTERING_FROM)
add(ARB_OWNER_PUBLIC, 60, VIEW, b"getMaxStylusContractFragments()", fragment_limit)
add_slot(ARB_OWNER_PUBLIC, 60, b"getCollectTips()", &ROOT, COLLECT_TIPS)
add_refused(
    ARB_OWNER_PUBLIC, 11, WRITE, b"rectifyChainOwner(address)", "owners do not change on a fork"
)

add(ARB_AGGREGATOR, 1, VIEW, b"getPreferredAggregator(address)", preferred_aggregator)
add(ARB_AGGREGATOR, 1, VIEW, b"getDefaultAggregator()", default_aggregator)
add(ARB_AGGREGATOR, 1, VIEW, b"getBatchPosters()", batch_posters)
add(ARB_AGGREGATOR, 1, VIEW, b"getFeeCollector(address)", fee_collector)
add(ARB_AGGREGATOR, 1, VIEW, b"getTxBaseFee(address)", give_zero)
add(ARB_AGGREGATOR, 1, WRITE, b"addBatchPoster(address)", change_posters)
add(ARB_AGGREGATOR, 1, WRITE, b"setFeeCollector(address,address)", change_posters)
add(ARB_AGGREGATOR, 1, WRITE, b"setTxBaseFee(address,uint256)", do_nothing)

add(ARB_RETRYABLE_TX, 1, VIEW, b"getLifetime()", lifetime)
add(ARB_RETRYABLE_TX, 1, VIEW, b"getTimeout(bytes32)", timeout_of)
add(ARB_RETRYABLE_TX, 1, VIEW, b"getBeneficiary(bytes32)", beneficiary_of)
add(ARB_RETRYABLE_TX, 1, VIEW, b"getCurrentRedeemer()", give_zero)
add(ARB_RETRYABLE_TX, 1, WRITE, b"redeem(bytes32)", redeem)
add(ARB_RETRYABLE_TX, 1, WRITE, b"keepalive(bytes32)", keepalive)
add(ARB_RETRYABLE_TX, 1, WRITE, b"cancel(bytes32)", cancel)

add(ARB_NATIVE_TOKEN_MANAGER, 41, WRITE, b"mintNativeToken(uint256)", change_tokens)
add(ARB_NATIVE_TOKEN_MANAGER, 41, WRITE, b"burnNativeToken(uint256)", change_tokens)
add(ARB_FILTERED_TRANSACTIONS_MANAGER, 60, WRITE, b"addFilteredTransaction(bytes32)", change_filters)
add(
    ARB_FILTERED_TRANSACTIONS_MANAGER, 60, WRITE, b"deleteFilteredTransaction(bytes32)",
    change_filters,
)
add_refused(
    ARB_FILTERED_TRANSACTIONS_MANAGER, 60, VIEW, b"isTransactionFiltered(bytes32)",
    "the list of filtered transactions is not read on a fork",
)

# Maps a version of ArbOS to the methods introduced with it that change the chain's rules.
SETTERS = {
    1: (
        "addChainOwner(address)", "removeChainOwner(address)",
        "setL1BaseFeeEstimateInertia(uint64)", "setL2BaseFee(uint256)",
        "setMinimumL2BaseFee(uint256)", "setSpeedLimit(uint64)", "setMaxTxGasLimit(uint64)",
        "setL2GasPricingInertia(uint64)", "setL2GasBacklogTolerance(uint64)",
        "setNetworkFeeAccount(address)", "scheduleArbOSUpgrade(uint64,uint64)",
        "setL1PricingEquilibrationUnits(uint256)", "setL1PricingInertia(uint64)",
        "setL1PricingRewardRecipient(address)", "setL1PricingRewardRate(uint64)",
        "setL1PricePerUnit(uint256)", "setPerBatchGasCharge(int64)",
        "setAmortizedCostCapBips(uint64)",
    ),
    5: ("setInfraFeeAccount(address)",),
    10: ("releaseL1PricerSurplusFunds(uint256)",),
    11: ("setChainConfig(string)",),
    20: ("setBrotliCompressionLevel(uint64)",),
    30: (
        "setInkPrice(uint32)", "setWasmMaxStackDepth(uint32)", "setWasmFreePages(uint16)",
        "setWasmPageGas(uint16)", "setWasmPageLimit(uint16)", "setWasmMinInitGas(uint8,uint16)",
        "setWasmInitCostScalar(uint64)", "setWasmExpiryDays(uint16)",
        "setWasmKeepaliveDays(uint16)", "setWasmBlockCacheSize(uint16)",
        "addWasmCacheManager(address)", "removeWasmCacheManager(address)",
    ),
    40: ("setWasmMaxSize(uint32)", "setCalldataPriceIncrease(bool)"),
    41: (
        "setNativeTokenManagementFrom(uint64)", "addNativeTokenOwner(address)",
        "removeNativeTokenOwner(address)",
    ),
    50: (
        "setMaxBlockGasLimit(uint64)", "setParentGasFloorPerToken(uint64)", "setGasBacklog(uint64)",
        "setGasPricingConstraints(uint64[3][])",
    ),
    59: ("setWasmActivationGas(uint64)",),
    60: (
        "setTransactionFilteringFrom(uint64)", "addTransactionFilterer(address)",
        "removeTransactionFilterer(address)", "setFilteredFundsRecipient(address)",
        "setMultiGasPricingConstraints(((uint8,uint64)[],uint32,uint64,uint64)[])",
        "setMaxStylusContractFragments(uint8)", "setCollectTips(bool)",
    ),
}
for first, signatures in SETTERS.items():
    for signature in signatures:
        add_refused(
            ARB_OWNER, first, WRITE, signature.encode(),
            "the rules of the chain do not change on a fork",
        )

add_unread(
    ARB_RETRYABLE_TX, 1, WRITE,
    b"submitRetryable(bytes32,uint256,uint256,uint256,uint256,uint64,uint256,address,address,address,bytes)",
    not_callable,
)
