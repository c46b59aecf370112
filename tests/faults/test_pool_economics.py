"""Tests published attacks on the pool: senders that pay less, or cannot pay, must evict nobody.

Sources: "DETER: Denial of Ethereum Txpool Services" (CCS 2021), "Speculative Denial-of-Service
Attacks in Ethereum" (USENIX Security 2024; MemPurge), "Understanding Ethereum Mempool Security
under Asymmetric DoS by Symbolized Stateful Fuzzing" (USENIX Security 2024), and the tests of the
pools of go-ethereum and reth.
"""

from contextlib import suppress

import pytest

from fastevm.core.execution.transaction.transaction import Transaction, sign_authorization
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidTransaction
from fastevm.node.pool.eviction import NextFees
from fastevm.node.pool.pool import PoolLimits, TransactionPool

ETHER = 10**18
GWEI = 10**9
BASE_FEE = 100 * GWEI
FEES = NextFees(base_fee=BASE_FEE, blob_base_fee=10)
CAPACITY = 120
QUEUED = 40
PER_SENDER = 32
LIMITS = PoolLimits(
    executable=CAPACITY,
    queued=QUEUED,
    executable_per_sender=PER_SENDER,
    queued_per_sender=PER_SENDER,
    blob_transactions=8,
    blob_transactions_per_sender=4,
)
HONEST = [number.to_bytes(32, "big") for number in range(1, 1 + CAPACITY)]
ATTACKERS = [number.to_bytes(32, "big") for number in range(10_001, 10_011)]
COST = 21_000 * 200 * GWEI  # maximum cost in wei of a transfer with the default fee cap


def signed(
    key: bytes, nonce: int = 0, tip: int = GWEI, cap: int = 200 * GWEI, **fields
) -> Transaction:
    values = {"to": b"\x01" * 20, "gas_limit": 21_000, "chain_id": 1, "nonce": nonce}
    prices = {"max_fee_per_gas": cap, "max_priority_fee_per_gas": tip}
    return Transaction.build(**{**values, **prices, **fields}).sign(key)


def with_blobs(key: bytes, nonce: int = 0, blob_cap: int = 20, **fields) -> Transaction:
    hashes = [b"\x01" + bytes(31)]
    return signed(key, nonce, max_fee_per_blob_gas=blob_cap, blob_versioned_hashes=hashes, **fields)


ADDRESSES = {key: signed(key).sender for key in (*HONEST, *ATTACKERS)}


def state(balance: int = ETHER, nonce: int = 0) -> Layer:
    return Layer.of({item: {"balance": balance, "nonce": nonce} for item in ADDRESSES.values()})


def full_pool() -> tuple[TransactionPool, list[Transaction]]:
    """Returns a full pool with one transaction of each honest sender."""
    pool = TransactionPool(state(), LIMITS)
    pool.next_fees = FEES
    offers = [signed(key) for key in HONEST]
    for offer in offers:
        pool.add(offer)
    assert pool.executable_count == CAPACITY
    return pool, offers


def offer(pool: TransactionPool, *transactions: Transaction) -> int:
    """Offers transactions. Returns how many of them the pool accepts."""
    taken = 0
    for transaction in transactions:
        with suppress(InvalidTransaction):
            pool.add(transaction)
            taken += 1
    return taken


def assert_all_stay(pool: TransactionPool, offers: list[Transaction]) -> None:
    """Asserts that every honest transaction is still pooled and the pool within its limits."""
    assert [item for item in offers if pool.find(item.hash) is None] == []
    assert pool.executable_count <= CAPACITY
    assert pool.queued_count <= QUEUED


def chain_of(key: bytes, nonces: range, **fields) -> list[Transaction]:
    return [signed(key, nonce, **fields) for nonce in nonces]


# --- published attacks ------------------------------------------------------------------------


def test_deter_x_future_transactions_evict_no_executable_ones() -> None:
    pool, offers = full_pool()
    for key in ATTACKERS:
        offer(pool, *chain_of(key, range(1, PER_SENDER), tip=90 * GWEI))
    assert_all_stay(pool, offers)


def test_deter_z_latent_overdrafts_evict_nobody_when_the_gap_closes() -> None:
    pool, offers = full_pool()
    drain = {"tip": 99 * GWEI, "value": ETHER - COST}
    for key in ATTACKERS:
        offer(pool, *chain_of(key, range(1, 20), tip=99 * GWEI))
        offer(pool, signed(key, 0, **drain))
    # An attacker's balance pays for the first transaction only, so the pool rejects the others.
    kept = [item for item in offers if pool.find(item.hash) is not None]
    assert len(kept) >= CAPACITY - len(ATTACKERS)
    assert pool.executable_count <= CAPACITY
    assert pool.queued_count <= QUEUED


def test_mempurge_a_costlier_replacement_of_the_parent_is_refused_not_overdrawn() -> None:
    pool = TransactionPool(state(), LIMITS)
    pool.next_fees = FEES
    key = ATTACKERS[0]
    assert offer(pool, *chain_of(key, range(20))) == 20
    drain = signed(key, 0, tip=2 * GWEI, cap=300 * GWEI, value=ETHER - 2 * COST)
    assert offer(pool, drain) == 0
    assert pool.executable_count == 20


def test_a_replaced_transaction_has_a_reason() -> None:
    pool = TransactionPool(state(), LIMITS)
    pool.next_fees = FEES
    key = HONEST[0]
    old, new = signed(key), signed(key, tip=2 * GWEI, cap=300 * GWEI)
    assert offer(pool, old, new) == 2
    assert (pool.drop_reason(old.hash) or "").startswith("replaced by a transaction with the same")
    assert pool.drop_reason(new.hash) is None


def test_funds_are_counted_together_while_a_slice_is_built() -> None:
    pool = TransactionPool(state(balance=3 * COST), LIMITS)
    pool.next_fees = FEES
    key = ATTACKERS[0]
    assert offer(pool, signed(key, 0, value=COST), signed(key, 2), signed(key, 3)) == 3
    pool.open_slice(BASE_FEE)
    first = pool.best()
    assert first is not None
    pool.confirm(first)  # The pool learns of the block before the state with the reduced balance.
    assert offer(pool, signed(key, 1)) == 1
    assert pool.executable_count == 1


@pytest.mark.parametrize("tip", [GWEI, 99 * GWEI])
def test_fee_caps_below_the_next_base_fee_evict_nobody(tip: int) -> None:
    pool, offers = full_pool()
    for key in ATTACKERS[:5]:
        offer(pool, *chain_of(key, range(PER_SENDER), tip=tip, cap=BASE_FEE - GWEI))
    assert_all_stay(pool, offers)


def test_high_tips_behind_a_low_one_evict_nobody() -> None:
    pool, offers = full_pool()
    pool.drop(offers.pop().hash)
    key = ATTACKERS[0]
    assert offer(pool, signed(key, 0, tip=1)) == 1
    offer(pool, *chain_of(key, range(1, PER_SENDER), tip=99 * GWEI))
    assert_all_stay(pool, offers)


def test_high_tips_behind_a_fee_cap_below_the_base_fee_evict_nobody() -> None:
    pool, offers = full_pool()
    pool.drop(offers.pop().hash)
    key = ATTACKERS[0]
    assert offer(pool, signed(key, 0, tip=1, cap=BASE_FEE - 1)) == 1
    offer(pool, *chain_of(key, range(1, PER_SENDER), tip=99 * GWEI))
    assert_all_stay(pool, offers)


def test_a_rising_base_fee_makes_the_transactions_leave_that_it_excludes() -> None:
    pool = TransactionPool(state(), LIMITS)
    pool.next_fees = FEES
    low = [signed(key, cap=110 * GWEI, tip=10 * GWEI) for key in HONEST]
    assert offer(pool, *low) == CAPACITY
    pool.next_fees = NextFees(base_fee=120 * GWEI)
    high = [signed(key, nonce, tip=GWEI) for key in ATTACKERS for nonce in range(10)]
    assert offer(pool, *high) == len(high)
    assert all(pool.find(item.hash) is not None for item in high)


def test_demoted_transactions_keep_the_limits_of_the_queue() -> None:
    pool = TransactionPool(state(), LIMITS)
    pool.next_fees = FEES
    chains = [chain_of(key, range(PER_SENDER)) for key in ATTACKERS[:3]]
    assert sum(offer(pool, *chain) for chain in chains) == 3 * PER_SENDER
    for chain in chains:
        assert pool.drop(chain[0].hash, "the sender's first transaction")
    assert pool.executable_count == 0
    assert pool.queued_count == QUEUED
    assert pool.drop_reason(chains[0][0].hash) == "the sender's first transaction"
    gone = [item for chain in chains for item in chain[1:] if pool.find(item.hash) is None]
    assert len(gone) == 3 * (PER_SENDER - 1) - QUEUED
    assert all("evicted" in (pool.drop_reason(item.hash) or "") for item in gone)


@pytest.mark.parametrize(
    "fees",
    [{"cap": 2, "tip": 1}, {"blob_cap": 1, "tip": 99 * GWEI}],
    ids=["fee cap", "blob fee cap"],
)
def test_cheap_blob_transactions_do_not_close_the_blob_pool(fees: dict) -> None:
    pool = TransactionPool(state(), LIMITS)
    pool.next_fees = FEES
    cheap = [with_blobs(key, nonce, **fees) for key in ATTACKERS[:2] for nonce in range(4)]
    assert offer(pool, *cheap) == 8
    honest = [with_blobs(key) for key in HONEST[:8]]
    assert offer(pool, *honest) == 8
    assert all(pool.find(item.hash) is not None for item in honest)
    assert offer(pool, *cheap) == 0
    assert len(pool) == 8


# --- behaviour that go-ethereum and reth publish as tests -------------------------------------


def test_a_lost_balance_postpones_what_it_does_not_cover() -> None:
    pool = TransactionPool(state(), LIMITS)
    pool.next_fees = FEES
    key = HONEST[0]
    assert offer(pool, *chain_of(key, range(4))) == 4
    pool.reset(state(balance=2 * COST), returned=[signed(HONEST[1], 0)])
    assert sorted(pool.executable()[ADDRESSES[key]]) == [0, 1]
    assert sorted(pool.queued()[ADDRESSES[key]]) == [2, 3]
    pool.reset(state())  # resets the pool to the state in which the sender has funds again
    assert sorted(pool.executable()[ADDRESSES[key]]) == [0, 1, 2, 3]


def test_included_transactions_lower_the_balance_that_covers_the_rest() -> None:
    pool = TransactionPool(state(), LIMITS)
    pool.next_fees = FEES
    key = HONEST[0]
    assert offer(pool, *chain_of(key, range(3))) == 3
    pool.reset(state(balance=COST, nonce=1), included=[signed(key, 0, value=ETHER - 2 * COST)])
    assert sorted(pool.executable()[ADDRESSES[key]]) == [1]
    assert sorted(pool.queued()[ADDRESSES[key]]) == [2]


def test_a_full_gap_promotes_no_more_than_a_sender_may_have() -> None:
    pool = TransactionPool(state(), LIMITS)
    pool.next_fees = FEES
    key = HONEST[0]
    assert offer(pool, *chain_of(key, range(1, PER_SENDER + 1))) == PER_SENDER
    assert offer(pool, signed(key, 0)) == 1
    assert pool.executable_count == PER_SENDER
    assert pool.queued_count == 1
    pool.open_slice(BASE_FEE)
    first = pool.best()
    assert first is not None
    pool.confirm(first)
    assert pool.executable_count == PER_SENDER


def test_a_better_tip_at_the_next_base_fee_evicts_the_lowest_the_last_to_arrive_first() -> None:
    pool, offers = full_pool()
    assert offer(pool, signed(ATTACKERS[0], tip=2 * GWEI, cap=BASE_FEE + 2 * GWEI)) == 1
    assert pool.find(offers[-1].hash) is None
    assert pool.find(offers[-2].hash) is not None
    assert offer(pool, signed(ATTACKERS[1], tip=90 * GWEI, cap=BASE_FEE + GWEI)) == 0


def test_an_included_parent_no_longer_lowers_the_rank_of_its_children() -> None:
    pool = TransactionPool(state(), LIMITS)
    pool.next_fees = FEES
    key = ATTACKERS[0]
    assert offer(pool, signed(key, 0, tip=1), signed(key, 1, tip=50 * GWEI)) == 2
    offers = [signed(item) for item in HONEST[: CAPACITY - 2]]
    assert offer(pool, *offers) == CAPACITY - 2
    nonces = {a: {"balance": ETHER, "nonce": int(k == key)} for k, a in ADDRESSES.items()}
    pool.reset(Layer.of(nonces), included=[signed(key, 0, tip=1)])
    assert offer(pool, signed(HONEST[-1]), signed(HONEST[-2], tip=2 * GWEI)) == 2
    assert pool.executable_count == CAPACITY
    assert 1 in pool.executable()[ADDRESSES[key]]


LARGE = 100_000  # bytes


def large(key: bytes, nonce: int = 0, **fields) -> Transaction:
    return signed(key, nonce, gas_limit=1_000_000, data=bytes(LARGE), **fields)


def test_large_transactions_that_no_block_includes_leave_for_small_ones() -> None:
    pool = TransactionPool(state(), PoolLimits(size=20 * LARGE))
    pool.next_fees = FEES
    unpaid = [large(key, nonce, tip=1, cap=1) for key in ATTACKERS for nonce in range(4)]
    assert offer(pool, *unpaid) < 20
    taken = len(pool)
    assert offer(pool, *[signed(key) for key in HONEST]) == len(HONEST)
    assert taken - 1 <= len(pool) - len(HONEST) <= taken
    assert offer(pool, *unpaid[-4:]) == 0


def test_one_large_transaction_does_not_evict_many_small_ones() -> None:
    pool = TransactionPool(state(), PoolLimits(size=13_000))
    pool.next_fees = FEES
    offers = [signed(key) for key in HONEST[:100]]
    assert offer(pool, *offers) == 100
    assert offer(pool, large(ATTACKERS[0], tip=50 * GWEI)) == 0
    assert_all_stay(pool, offers)


def test_a_larger_replacement_needs_room_as_well() -> None:
    pool = TransactionPool(state(), PoolLimits(size=2 * LARGE))
    pool.next_fees = FEES
    first, *others = ATTACKERS[:3]
    assert offer(pool, large(first, tip=9 * GWEI), *[signed(key) for key in others]) == 3
    assert offer(pool, large(others[0], tip=2 * GWEI, cap=400 * GWEI)) == 0
    assert len(pool) == 3


def test_authorizations_of_other_chains_reserve_nobody() -> None:
    signer, stranger = ATTACKERS[:2]
    for chain_id, reserved in ((999, False), (1, True), (0, True)):
        authorization = sign_authorization(signer, chain_id=chain_id, address=b"\x02" * 20, nonce=0)
        pool = TransactionPool(state(), LIMITS)
        listed = signed(stranger, gas_limit=100_000, authorization_list=[authorization])
        assert offer(pool, listed) == 1
        assert offer(pool, signed(signer, 0), signed(signer, 1)) == (1 if reserved else 2)
