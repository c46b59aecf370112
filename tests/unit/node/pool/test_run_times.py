"""Tests the learned execution times, and the order of transactions that follows from them."""

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.state.layer import Layer
from fastevm.node.dev_accounts import dev_accounts
from fastevm.node.pool.pool import PoolLimits, TransactionPool
from fastevm.node.pool.run_times import LONG_SECONDS, MAX_RATES, UNKNOWN_RATE, RunTimes

ACCOUNTS = dev_accounts(4)
CODE, OTHER = b"\xc0" * 20, b"\xc1" * 20
GAS = 16_000_000


def signed(who: int = 0, nonce: int = 0, gas: int = GAS, **fields) -> Transaction:
    values = {"to": CODE, "gas_limit": gas, "chain_id": 1, "nonce": nonce}
    prices = {"max_fee_per_gas": 100, "max_priority_fee_per_gas": 10}
    made = Transaction.build(**{**values, **prices, **fields})
    return made.sign(ACCOUNTS[who].private_key)


def expected(times: RunTimes, transaction: Transaction) -> float:
    assert transaction.sender is not None
    return times.expected(transaction, transaction.sender)


def learn(times: RunTimes, transaction: Transaction, seconds: float, gas: int | None) -> None:
    assert transaction.sender is not None
    times.learn(transaction, transaction.sender, seconds, gas)


def test_unknown_code_is_taken_to_be_slow_unless_its_gas_is_low() -> None:
    times = RunTimes()
    assert expected(times, signed()) == GAS * UNKNOWN_RATE > LONG_SECONDS
    assert expected(times, signed(gas=21_000)) < 0.001
    assert expected(times, signed(to=None)) == GAS * UNKNOWN_RATE


def test_a_slow_execution_counts_immediately_and_fast_ones_by_and_by() -> None:
    times = RunTimes()
    learn(times, signed(), 0.002, GAS)
    assert expected(times, signed()) == 0.002
    assert expected(times, signed(1)) == 0.002, "another sender of the same code"
    learn(times, signed(1), 0.5, GAS)
    assert expected(times, signed(2)) == 0.5
    learn(times, signed(2), 0.002, GAS)
    assert 0.3 < expected(times, signed(2)) < 0.5
    for _ in range(40):
        learn(times, signed(2), 0.002, GAS)
    assert expected(times, signed(2)) < 0.003
    assert expected(times, signed(1)) == 0.5, "the sender of the slow execution"


def test_a_stopped_execution_is_at_least_as_slow_as_unknown_code() -> None:
    times = RunTimes()
    learn(times, signed(), 0.002, GAS)
    learn(times, signed(), 0.04, None)
    assert expected(times, signed()) == GAS * UNKNOWN_RATE
    learn(times, signed(), 2.0, None)
    assert expected(times, signed()) == 2.0


def test_the_fixed_costs_of_a_cheap_execution_do_not_count_as_time_per_gas() -> None:
    times = RunTimes()
    learn(times, signed(), 0.0001, 25_000)
    assert expected(times, signed()) < 0.001


def test_a_creation_is_judged_by_its_sender() -> None:
    times = RunTimes()
    learn(times, signed(to=None), 0.002, GAS)
    assert expected(times, signed(to=None)) == 0.002
    assert expected(times, signed(1, to=None)) == GAS * UNKNOWN_RATE


def test_the_lowest_gas_limit_that_took_too_long_is_remembered_by_sender() -> None:
    times = RunTimes()
    assert times.refused_from(CODE) is None
    times.refuse_from(CODE, GAS)
    times.refuse_from(CODE, GAS - 5)
    times.refuse_from(CODE, GAS)
    assert times.refused_from(CODE) == GAS - 5


def test_only_so_many_rates_are_remembered() -> None:
    times = RunTimes()
    for number in range(MAX_RATES + 5):
        made = Transaction.build(to=number.to_bytes(20, "big"), gas_limit=GAS)
        times.learn(made, b"\x01" * 20, 0.001, GAS)
    assert len(times._codes) == MAX_RATES


def test_slow_transactions_come_after_the_others_and_long_ones_by_themselves() -> None:
    state = {account.address: {"balance": 10**20} for account in ACCOUNTS}
    pool = TransactionPool(Layer.of(state), PoolLimits())
    long = signed(0, max_priority_fee_per_gas=50)
    slow = signed(1, gas=300_000, max_priority_fee_per_gas=40)
    low, high = signed(2, gas=21_000), signed(3, gas=21_000, max_priority_fee_per_gas=20)
    for item in (long, slow, low, high):
        pool.add(item)
    pool.open_slice(0, by_time=True)
    order = []
    while (pooled := pool.best()) is not None:
        order.append(pooled.transaction)
    assert order == [high, low, slow]
    best = pool.best_long()
    assert best is not None
    assert best.transaction is long
    assert pool.best_long() is None
    pool.open_slice(0, by_time=False)
    order = []
    while (pooled := pool.best()) is not None:
        order.append(pooled.transaction)
    assert order == [long, slow, high, low], "blocks on demand have no deadline"
