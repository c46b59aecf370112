"""Tests that a block has the same result on several threads as on one."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from fastevm.core.crypto.secp256k1 import public_key_address
from fastevm.core.execution.parallel.parallel import counts
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidBlock
from tests.unit.core.execution.block.test_block import COINBASE, LOGGER, REQUESTS, builder

KEYS = [bytes([n]) * 32 for n in range(1, 21)]
SENDERS = [public_key_address(key) for key in KEYS]
COUNTER, OTHER, WATCHER, RICH, LOUD = (bytes(19) + bytes([n]) for n in range(0x80, 0x85))
# SSTORE(0, SLOAD(0) + 1)
COUNT = bytes.fromhex("6001600054016000 55".replace(" ", ""))
# SSTORE(CALLER, BALANCE(COINBASE))
WATCH = bytes.fromhex("4131335500")
# CALL(gas, CALLER, 3 wei)
PAY = bytes.fromhex("6000600060006000600333 5af100".replace(" ", ""))


def state(more=()):
    accounts = dict(more) | {sender: {"balance": 10**20} for sender in SENDERS}
    accounts |= {address: {"code": b"\x00"} for address in REQUESTS}
    accounts |= {COUNTER: {"code": COUNT}, WATCHER: {"code": WATCH}}
    accounts |= {RICH: {"code": PAY, "balance": 40, "nonce": 1}}
    return Layer.of(accounts)


def sent(at, nonce=0, to=OTHER, **fields):
    fields = {"gas_limit": 100_000, "gas_price": 3 * 10**9, "data": b"\x01"} | fields
    return Transaction.build(nonce=nonce, to=to, **fields).sign(KEYS[at], chain_id=1)


def outcome(transactions, threads, more=()):
    made = builder(state(more), threads=threads)
    made.begin()
    made.add_all(transactions)
    result = made.finish()
    return (
        result.state_root, tuple(result.receipts), result.receipts_root, result.logs_bloom,
        result.gas_used,
    )  # fmt: skip


def same_on_threads(transactions, threads=4, more=()):
    """Asserts that the result on several threads equals the result on one thread.

    Returns how many transactions ran optimistically, and how many were executed again.
    """
    expected = outcome(transactions, 1, more)
    before = counts()
    assert outcome(transactions, threads, more) == expected
    after = counts()
    return after["ran"] - before["ran"], after["repeated"] - before["repeated"]


def test_independent_transactions_run_once():
    transactions = [sent(at, to=SENDERS[at], value=1) for at in range(20)]
    assert same_on_threads(transactions, more={COINBASE: {"balance": 1}}) == (20, 0)


def test_transfers_without_data_run_on_one_thread():
    transactions = [sent(at % 20, at // 20, value=1, data=b"") for at in range(41)]
    assert same_on_threads(transactions)[0] == 0
    transactions[1:3] = [sent(1), sent(2, to=COUNTER)]
    assert same_on_threads(transactions[:40])[0] == 40


@pytest.mark.parametrize("to", [COUNTER, LOUD, OTHER])
def test_threads_end_a_large_block_together(to):
    for count in (63, 64, 65, 200):
        transactions = [sent(at % 20, at // 20, to=to, gas_limit=80_000) for at in range(count)]
        for threads in (2, 5):
            same_on_threads(transactions, threads, more={LOUD: {"code": LOGGER}})


def test_fees_and_gifts_to_one_account_are_no_conflict():
    ran, repeated = same_on_threads([sent(0, to=COINBASE, value=1)] + [
        sent(at, to=SENDERS[0], value=5) for at in range(1, 20)
    ])  # fmt: skip
    assert ran == 20
    assert repeated < 20


def test_the_transactions_of_one_sender_run_ahead_of_each_other():
    ran, _ = same_on_threads([sent(0, nonce, to=SENDERS[1], value=7) for nonce in range(40)])
    assert ran == 40


def test_every_increment_of_one_slot_counts():
    assert same_on_threads([sent(at, to=COUNTER) for at in range(20)], threads=8)[0] == 20


def test_the_coinbase_is_read_with_the_fees_before():
    assert same_on_threads([sent(at, to=WATCHER) for at in range(20)], threads=8)[0] == 20


def test_a_contract_pays_until_it_has_nothing_left():
    assert same_on_threads([sent(at, to=RICH) for at in range(20)], threads=8)[0] == 20


@pytest.mark.parametrize("count", [63, 64, 129, 300])
def test_many_receipts_are_encoded_and_hashed_as_few_are(count):
    # The contract emits a log as long as its calldata. Many receipts of different sizes make a deep
    # trie.
    noisy = bytes(19) + b"\x90"
    more = {noisy: {"code": bytes.fromhex("33365fa100")}}
    transactions = [
        sent(at % 20, at // 20, to=noisy, data=bytes(at % 70)) for at in range(count)
    ]  # fmt: skip
    same_on_threads(transactions, more=more)


@pytest.mark.parametrize("at", [0, 7, 19])
def test_a_transaction_that_is_not_valid_is_refused_in_the_same_words(at):
    transactions = [sent(n) for n in range(20)]
    transactions[at] = sent(at, nonce=5)
    words = []
    for threads in (1, 4):
        made = builder(state(), threads=threads)
        made.begin()
        with pytest.raises(InvalidBlock) as refusal:
            made.add_all(transactions)
        words.append((str(refusal.value), made.gas_used))
    assert words[0] == words[1]
    assert f"transactions[{at}]" in words[0][0]


def test_a_block_that_is_full_is_refused_in_the_same_words():
    transactions = [sent(n, gas_limit=100_000, to=COUNTER) for n in range(20)]
    words = []
    for threads in (1, 4):
        made = builder(state(), threads=threads, gas_limit=300_000)
        made.begin()
        with pytest.raises(InvalidBlock) as refusal:
            made.add_all(transactions)
        words.append(str(refusal.value))
    assert words[0] == words[1]


def test_blocks_at_the_same_time_share_the_threads():
    transactions = [sent(at, to=COUNTER) for at in range(20)]
    expected = outcome(transactions, 1)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda threads: outcome(transactions, threads), [2, 3, 4] * 10))
    assert all(item == expected for item in found)


def test_a_child_process_starts_threads_of_its_own():
    transactions = [sent(at, to=COUNTER) for at in range(20)]
    expected = outcome(transactions, 2)
    child = os.fork()
    if child == 0:
        os._exit(0 if outcome(transactions, 2) == expected else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_cancelled_block_takes_no_transaction_on_threads():
    made = builder(state(), threads=4)
    made.begin()
    made.cancel()
    with pytest.raises(InvalidBlock, match=r"transactions\[0\]"):
        made.add_all([sent(at, to=COUNTER) for at in range(20)])
    assert made.gas_used == 0


@pytest.mark.parametrize("threads", [0, -1])
def test_there_is_at_least_one_thread(threads):
    with pytest.raises(ValueError, match="threads is at least 1"):
        builder(state(), threads=threads)
