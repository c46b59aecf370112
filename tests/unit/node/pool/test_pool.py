"""Tests the pool: accepted and rejected transactions, error texts, and the order for builders."""

from collections.abc import Callable
from typing import Any

import pytest

from fastevm.core.execution.transaction.transaction import Transaction, sign_authorization
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidTransaction
from fastevm.node.dev_accounts import dev_accounts
from fastevm.node.pool.pool import PoolLimits, TransactionPool

ACCOUNTS = dev_accounts(4)
RICH = 10**20


def state(*, nonce: int = 0, balance: int = RICH, **fields) -> Layer:
    return Layer.of({a.address: {"nonce": nonce, "balance": balance, **fields} for a in ACCOUNTS})


def pool_on(accounts: Layer | None = None, **limits: int) -> TransactionPool:
    return TransactionPool(accounts or state(), PoolLimits(**limits))


def signed(nonce: int = 0, tip: int = 10, cap: int = 100, who: int = 0, **fields) -> Transaction:
    values = {"to": b"\x01" * 20, "gas_limit": 21_000, "chain_id": 1, "nonce": nonce}
    prices = {"max_fee_per_gas": cap, "max_priority_fee_per_gas": tip}
    return Transaction.build(**{**values, **prices, **fields}).sign(ACCOUNTS[who].private_key)


def with_blobs(nonce: int = 0, blob_fee: int = 5, **fields) -> Transaction:
    hashes = [b"\x01" + bytes(31)]
    return signed(nonce, max_fee_per_blob_gas=blob_fee, blob_versioned_hashes=hashes, **fields)


def set_code(signer: int, nonce: int = 0, **fields) -> Transaction:
    key = ACCOUNTS[signer].private_key
    authorization = sign_authorization(key, chain_id=1, address=b"\x09" * 20, nonce=0)
    return signed(nonce, gas_limit=100_000, authorization_list=[authorization], **fields)


def refused(action: Callable[[], None]) -> InvalidTransaction:
    with pytest.raises(InvalidTransaction) as error:
        action()
    return error.value


def refusal(action: Callable[[], None]) -> str:
    return refused(action).code


def taken(pool: TransactionPool, base_fee: int = 0) -> list[Transaction]:
    """Confirms and returns all transactions in the order in which a builder would include them."""
    pool.open_slice(base_fee)
    found = []
    while (pooled := pool.best()) is not None:
        pool.confirm(pooled)
        found.append(pooled.transaction)
    return found


def test_the_same_transaction_twice_is_already_known() -> None:
    pool = pool_on()
    pool.add(signed())
    assert refusal(lambda: pool.add(signed())) == "already_known"
    assert len(pool) == 1


def test_a_used_nonce_is_too_low() -> None:
    error = refused(lambda: pool_on(state(nonce=5)).add(signed(4)))
    assert error.code == "nonce_too_low"
    assert error.message == "nonce too low: next nonce 5, tx nonce 4"


def test_price_and_value_must_be_covered() -> None:
    cost = 21_000 * 100 + 7
    pool_on(state(balance=cost)).add(signed(value=7))
    error = refused(lambda: pool_on(state(balance=cost - 1)).add(signed(value=7)))
    assert error.code == "insufficient_funds"
    assert error.message == (
        "insufficient funds for gas * price + value: "
        f"balance {cost - 1}, tx cost {cost}, overshot 1"
    )


def test_what_is_executable_of_a_sender_must_be_covered_together() -> None:
    cost = 21_000 * 100
    pool = pool_on(state(balance=2 * cost + 5))
    pool.add(signed(0))
    pool.add(signed(1))
    error = refused(lambda: pool.add(signed(2)))
    assert f"queued cost {2 * cost}, tx cost {cost}, overshot {cost - 5}" in error.message
    error = refused(lambda: pool.add(signed(0, tip=20, cap=120)))
    assert "tx bumped" in error.message


@pytest.mark.parametrize(
    ("tip", "cap", "accepted"),
    [
        (10, 100, False),
        (11, 109, False),
        (10, 110, False),
        (11, 110, True),
        (100, 100, False),
        (12, 200, True),
    ],
)
def test_a_replacement_raises_both_caps_by_a_tenth(tip: int, cap: int, accepted: bool) -> None:
    pool = pool_on()
    old, new = signed(), signed(tip=tip, cap=cap, data=b"x", gas_limit=30_000)
    pool.add(old)
    if accepted:
        pool.add(new)
        assert pool.find(old.hash) is None
        assert pool.find(new.hash) is new
        assert taken(pool) == [new]
    else:
        assert refusal(lambda: pool.add(new)) == "replacement_underpriced"
        assert pool.find(old.hash) is old
        assert len(pool) == 1


@pytest.mark.parametrize(
    ("tip", "cap", "accepted"), [(10, 100, False), (10, 101, True), (1, 101, True), (20, 99, False)]
)
def test_a_higher_cap_alone_replaces_where_the_limits_say_so(
    tip: int, cap: int, accepted: bool
) -> None:
    pool = pool_on(cap_alone_replaces=True)
    pool.add(signed())
    new = signed(tip=tip, cap=cap, data=b"x", gas_limit=30_000)
    if accepted:
        pool.add(new)
        assert taken(pool) == [new]
    else:
        assert refusal(lambda: pool.add(new)) == "replacement_underpriced"


def test_a_replacement_in_the_middle_keeps_what_follows_executable() -> None:
    pool = pool_on()
    for nonce in range(4):
        pool.add(signed(nonce))
    new = signed(1, tip=20, cap=200)
    pool.add(new)
    assert pool.executable_count == 4
    assert [item.nonce for item in taken(pool)] == [0, 1, 2, 3]


def test_a_gap_queues_what_comes_after_it() -> None:
    pool = pool_on()
    for nonce in (0, 1, 3):
        pool.add(signed(nonce))
    sender = ACCOUNTS[0].address
    assert list(pool.executable()[sender]) == [0, 1]
    assert list(pool.queued()[sender]) == [3]
    pool.add(signed(2))
    assert list(pool.executable()[sender]) == [0, 1, 2, 3]
    assert not pool.queued()


def test_a_dump_of_the_pool_lets_the_builder_go_on_between_two_senders() -> None:
    pool, entered = pool_on(), 0

    class CountingLock:
        def __init__(self, lock: Any) -> None:
            self.lock = lock

        def __enter__(self) -> None:
            nonlocal entered
            entered += 1
            self.lock.acquire()

        def __exit__(self, *error: object) -> None:
            self.lock.release()

    for who in range(4):
        for nonce in (0, 1, 3):
            pool.add(signed(nonce, who=who))
    pool._lock = CountingLock(pool._lock)
    assert [list(by_nonce) for by_nonce in pool.executable().values()] == [[0, 1]] * 4
    assert entered == 1 + 4
    executable, queued = pool.content_of(ACCOUNTS[1].address)
    assert (list(executable), list(queued)) == ([0, 1], [3])
    assert pool.content_of(b"\x01" * 20) == ({}, {})


def test_dropping_one_queues_what_follows_it() -> None:
    pool = pool_on()
    offers = [signed(nonce) for nonce in range(3)]
    for offer in offers:
        pool.add(offer)
    assert pool.drop(offers[1].hash)
    assert not pool.drop(offers[1].hash)
    assert (pool.executable_count, pool.queued_count) == (1, 1)
    assert taken(pool) == offers[:1]


def test_five_thousand_dropped_transactions_do_not_hide_why_an_earlier_left() -> None:
    pool = pool_on()
    offers = [signed(value=value) for value in range(5_000)]
    for offer in offers:
        pool.add(offer)
        pool.drop(offer.hash, "too old")
    assert pool.drop_reason(offers[0].hash) == "too old"


def test_only_the_oldest_drop_reasons_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastevm.node.pool.pool.MAX_DROP_REASONS", 2)
    pool = pool_on()
    offers = [signed(value=value) for value in range(3)]
    for offer in offers:
        pool.add(offer)
        pool.drop(offer.hash, "too old")
    assert [pool.drop_reason(offer.hash) for offer in offers] == [None, "too old", "too old"]


def test_the_best_offer_has_the_highest_tip_then_came_first() -> None:
    pool = pool_on()
    for who, tip in ((0, 5), (1, 50), (2, 50)):
        pool.add(signed(who=who, tip=tip))
    order = [item.sender for item in taken(pool, 10)]
    assert order == [ACCOUNTS[1].address, ACCOUNTS[2].address, ACCOUNTS[0].address]


def test_nonces_of_a_sender_come_in_order_whatever_they_pay() -> None:
    pool = pool_on()
    pool.add(signed(0, tip=1))
    pool.add(signed(1, tip=90))
    pool.add(signed(0, tip=50, who=1))
    order = [(item.sender, item.nonce) for item in taken(pool)]
    first, second = ACCOUNTS[0].address, ACCOUNTS[1].address
    assert order == [(second, 0), (first, 0), (first, 1)]


def test_a_base_fee_above_the_cap_makes_a_transaction_wait() -> None:
    pool = pool_on()
    pool.add(signed(cap=100))
    assert taken(pool, 101) == []
    assert len(taken(pool, 100)) == 1


def test_a_cap_near_the_base_fee_lowers_the_offer() -> None:
    pool = pool_on()
    pool.add(signed(tip=50, cap=100))
    pool.add(signed(tip=20, cap=1000, who=1))
    assert [item.sender for item in taken(pool, 95)] == [ACCOUNTS[1].address, ACCOUNTS[0].address]


def test_a_transaction_that_was_set_aside_is_offered_again_in_the_next_slice() -> None:
    pool = pool_on()
    pool.add(signed(0))
    pool.add(signed(1))
    pool.open_slice(0)
    pooled = pool.best()
    assert pooled is not None
    pool.set_aside(pooled)
    assert pool.best() is None
    assert [item.nonce for item in taken(pool)] == [0, 1]


def test_confirmed_ones_stay_known_until_their_block_is_canonical() -> None:
    pool = pool_on()
    offer = signed()
    pool.add(offer)
    assert taken(pool) == [offer]
    assert len(pool) == 0
    assert pool.find(offer.hash) is offer
    assert refusal(lambda: pool.add(signed())) == "already_known"
    assert refusal(lambda: pool.add(signed(value=3))) == "nonce_too_low"
    pool.settle(state(nonce=1))
    pool.sealed([offer])
    assert pool.find(offer.hash) is None
    assert refusal(lambda: pool.add(signed())) == "nonce_too_low"


def test_the_next_nonce_is_executable_before_the_slice_is_closed() -> None:
    pool = pool_on()
    pool.add(signed(0))
    assert len(taken(pool)) == 1
    pool.add(signed(1))
    assert pool.executable_count == 1
    pool.settle(state(nonce=1))
    assert [item.nonce for item in taken(pool)] == [1]


def test_the_next_nonce_to_sign_follows_what_waits_and_what_is_being_included() -> None:
    pool = pool_on(state(nonce=3))
    address = ACCOUNTS[0].address
    assert pool.next_nonce(address) == 3
    for nonce in (3, 4, 6):
        pool.add(signed(nonce))
    assert pool.next_nonce(address) == 5
    taken(pool)
    assert pool.next_nonce(address) == 5
    pool.settle(state(nonce=5))
    assert pool.next_nonce(address) == 5


def test_no_nonce_is_offered_again_while_a_slice_is_built_and_published() -> None:
    before, after = state(nonce=0), state(nonce=1)
    pool = pool_on(before)
    address = ACCOUNTS[0].address
    assert not pool.is_ahead_of(before)
    pool.add(signed(0))
    for step in (lambda: None, lambda: taken(pool), lambda: pool.settle(after)):
        step()
        assert pool.is_ahead_of(before)
        assert pool.next_nonce(address, known=0) == 1
    assert not pool.is_ahead_of(after)
    assert pool.next_nonce(address, known=2) == 2


def test_a_block_given_up_brings_its_transactions_back() -> None:
    pool = pool_on()
    offers = [signed(nonce) for nonce in range(3)]
    for offer in offers:
        pool.add(offer)
    assert taken(pool) == offers
    pool.settle(state(nonce=3))
    pool.reset(state())
    assert taken(pool) == offers


def test_only_those_readmitted_return_from_removed_blocks() -> None:
    pool = pool_on(state(nonce=2))
    first, second = signed(0), signed(1)
    with pool.readmitting({first.hash}):
        pool.reset(state(), returned=[first, second])
    assert taken(pool) == [first]
    pool.reset(state(), returned=[second])
    assert taken(pool) == [first, second]


def test_transactions_of_removed_blocks_return_and_those_included_leave() -> None:
    pool = pool_on(state(nonce=2))
    pool.add(signed(2))
    old, kept = [signed(0), signed(1)], signed(0)
    pool.reset(state(nonce=1), included=[kept], returned=old)
    assert sorted(pool.executable()[ACCOUNTS[0].address]) == [1, 2]
    assert [item.nonce for item in taken(pool)] == [1, 2]


def test_blocks_of_others_move_the_nonces() -> None:
    pool = pool_on()
    for nonce in range(4):
        pool.add(signed(nonce))
    pool.reset(state(nonce=2), included=[signed(0, value=9), signed(1)])
    assert list(pool.executable()[ACCOUNTS[0].address]) == [2, 3]


def test_a_full_pool_keeps_the_better_payer() -> None:
    pool = pool_on(executable=2)
    for who in (0, 1):
        pool.add(signed(who=who, tip=10 + who))
    error = refused(lambda: pool.add(signed(who=2, tip=10)))
    assert (error.code, error.message) == ("underpriced", "transaction underpriced")
    pool.add(signed(who=2, tip=20))
    assert len(pool) == 2
    assert ACCOUNTS[0].address not in pool.executable()


def test_the_sender_of_the_cheapest_loses_its_last_one() -> None:
    pool = pool_on(executable=3)
    for nonce, tip in ((0, 1), (1, 50), (2, 60)):
        pool.add(signed(nonce, tip=tip))
    pool.add(signed(who=1, tip=5))
    assert list(pool.executable()[ACCOUNTS[0].address]) == [0, 1]
    assert refusal(lambda: pool.add(signed(2, tip=70))) == "underpriced"


def test_the_queue_has_its_own_limit() -> None:
    pool = pool_on(queued=2)
    pool.add(signed(0))
    pool.add(signed(5, who=1, tip=20))
    pool.add(signed(6, who=2, tip=30))
    assert refusal(lambda: pool.add(signed(7, who=3, tip=20))) == "underpriced"
    pool.add(signed(7, who=3, tip=40))
    assert pool.queued_count == 2
    assert pool.executable_count == 1


def test_a_sender_has_a_limit_in_both_parts() -> None:
    pool = pool_on(executable_per_sender=2, queued_per_sender=1)
    for nonce in (0, 1, 9):
        pool.add(signed(nonce))
    assert refusal(lambda: pool.add(signed(2))) == "account_limit"
    assert refused(lambda: pool.add(signed(8))).message == "account limit exceeded: pooled 3 txs"


def test_blob_transactions_have_no_gaps_and_share_no_account() -> None:
    pool = pool_on()
    pool.add(with_blobs(0))
    error = refused(lambda: pool.add(with_blobs(2)))
    assert error.message == "nonce too high: tx nonce 2, gapped nonce 1"
    assert refused(lambda: pool.add(signed(1))).message == "address already reserved"
    pool.add(signed(who=1))
    assert refusal(lambda: pool.add(with_blobs(1, who=1))) == "address_reserved"


@pytest.mark.parametrize(
    ("fees", "words"),
    [
        ((10, 200, 10), "new tx gas tip cap 10 <= 10 queued"),
        ((20, 100, 10), "new tx gas fee cap 100 <= 100 queued"),
        ((20, 200, 5), "new tx blob gas fee cap 5 <= 5 queued"),
        ((20, 199, 10), "new tx gas fee cap 199 < 100 queued + 100% replacement penalty"),
        ((20, 200, 10), None),
    ],
)
def test_a_replacement_with_blobs_doubles_all_three(fees: tuple, words: str | None) -> None:
    pool = pool_on()
    pool.add(with_blobs())
    tip, cap, blob_fee = fees
    new = with_blobs(tip=tip, cap=cap, blob_fee=blob_fee)
    if words is None:
        pool.add(new)
    else:
        error = refused(lambda: pool.add(new))
        assert error.code == "replacement_underpriced"
        assert error.message == f"replacement transaction underpriced: {words}"


def test_blob_transactions_have_limits_of_their_own() -> None:
    pool = pool_on(blob_transactions=3, blob_transactions_per_sender=2)
    for nonce in range(2):
        pool.add(with_blobs(nonce))
    assert refusal(lambda: pool.add(with_blobs(2))) == "account_limit"
    pool.add(with_blobs(who=1))
    assert refusal(lambda: pool.add(with_blobs(who=2))) == "underpriced"
    better = with_blobs(who=2, tip=20)
    pool.add(better)
    assert pool.find(better.hash) is better
    assert len(pool) == 3


def test_a_delegated_account_has_one_transaction_in_flight() -> None:
    pool = pool_on(state(code=b"\xef\x01\x00" + bytes(20)))
    assert refusal(lambda: pool.add(signed(1))) == "delegated_gap"
    pool.add(signed(0))
    error = refused(lambda: pool.add(signed(1)))
    assert error.message == "in-flight transaction limit reached for delegated accounts"
    pool.add(signed(0, tip=20, cap=200))


def test_a_pooled_authorization_limits_its_signer() -> None:
    pool = pool_on()
    authorization = set_code(signer=1)
    pool.add(authorization)
    pool.add(signed(0, who=1))
    assert refusal(lambda: pool.add(signed(1, who=1))) == "delegated_in_flight"
    pool.drop(authorization.hash)
    pool.add(signed(1, who=1))


def test_an_authority_with_several_transactions_is_reserved() -> None:
    pool = pool_on()
    pool.add(signed(0, who=1))
    pool.add(signed(1, who=1))
    error = refused(lambda: pool.add(set_code(signer=1)))
    assert error.message == "authority already reserved"


def test_thousands_of_transactions_enter_and_leave_in_a_second() -> None:
    count = 2_000
    keys = dev_accounts(50)
    pool = TransactionPool(Layer.of({key.address: {"balance": RICH} for key in keys}))
    for number in range(count):
        item = Transaction.build(
            to=bytes(20),
            gas_limit=21_000,
            chain_id=1,
            nonce=number // len(keys),
            max_fee_per_gas=100,
            max_priority_fee_per_gas=1 + number % 7,
        )
        pool.add(item.sign(keys[number % len(keys)].private_key))
    assert len(taken(pool)) == count
    assert (pool.executable_count, pool.queued_count, len(pool)) == (0, 0, 0)
