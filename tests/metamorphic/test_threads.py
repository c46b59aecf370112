"""Tests that many threads that share states and rules have the results of one thread."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidTransaction
from fastevm.evm.machine import EVM
from tests.differential.cases import Case, make_case
from tests.differential.machine import (
    block_of,
    dump,
    prepare,
    run_transaction,
    state_of,
    unhexed,
    with_signatures,
)

THREADS = 4
FORKS = ("Frontier", "Byzantium", "London", "Osaka")
CASES = 15
OFTEN = 1e-5


@pytest.fixture(autouse=True)
def _threads_change_often() -> Iterator[None]:
    """Makes Python switch threads every few microseconds, so that they interleave often."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(OFTEN)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture(scope="module")
def worlds() -> list[tuple[Case, Layer]]:
    """Provides cases and their states, which all threads share."""
    cases = [make_case(seed, fork) for fork in FORKS for seed in range(CASES)]
    return [(case, state_of(case.pre)) for case in cases]


def run_all(worlds: list[tuple[Case, Layer]], *, roots: bool) -> list[Any]:
    """Runs the transactions and calls of all cases, on machines that only this thread uses."""
    machines = {fork: EVM(fork) for fork in FORKS}
    done: list[Any] = []
    for case, layer in worlds:
        evm = machines[case.fork]
        evm.set_block(**block_of(case, evm.schedule))
        evm.state = layer
        for address in case.pre:
            result = evm.call(unhexed(address), b"\1" * 36, gas=50_000)
            done.append((result.success, result.gas_used, result.output, result.error))
        done += [run_transaction(evm, fields) for fields in case.transactions]
        done.append(dump(evm.state))
        if roots:
            done += [layer.state_root(), evm.state.state_root()]
    return done


def in_threads(worlds: list[tuple[Case, Layer]], *, roots: bool) -> list[list[Any]]:
    with ThreadPoolExecutor(THREADS) as pool:
        jobs = [pool.submit(run_all, worlds, roots=roots) for _ in range(THREADS)]
        return [job.result() for job in jobs]


def test_threads_over_shared_states_do_what_one_thread_does(
    worlds: list[tuple[Case, Layer]],
) -> None:
    outcomes = in_threads(worlds, roots=False)
    expected = run_all(worlds, roots=False)
    assert all(outcome == expected for outcome in outcomes)


def test_threads_may_ask_one_state_for_its_root_at_the_same_time() -> None:
    cases = [make_case(1000 + seed, fork) for fork in FORKS for seed in range(CASES)]
    outcomes = in_threads([(case, state_of(case.pre)) for case in cases], roots=True)
    expected = run_all([(case, state_of(case.pre)) for case in cases], roots=True)
    assert all(outcome == expected for outcome in outcomes)


def test_threads_may_run_the_same_transactions_whose_senders_nobody_knows_yet() -> None:
    cases = [make_case(seed, "Osaka") for seed in range(30)]
    raw = [[unhexed(tx["raw"]) for tx in with_signatures(case).transactions] for case in cases]
    signed = [
        (case, [Transaction.decode(data) for data in datas])
        for case, datas in zip(cases, raw, strict=True)
    ]

    def run_them() -> list[Any]:
        evm, done = EVM("Osaka"), []
        for case, transactions in signed:
            prepare(case, evm)
            for transaction in transactions:
                try:
                    result = evm.execute(transaction)
                    done.append((result.success, result.gas_used, result.output, result.logs))
                except InvalidTransaction as refusal:
                    done.append((str(refusal),))
        return done

    with ThreadPoolExecutor(THREADS) as pool:
        outcomes = list(pool.map(lambda _: run_them(), range(THREADS)))
    assert all(outcome == outcomes[0] for outcome in outcomes)


def test_states_die_in_other_threads_than_they_were_made_in() -> None:
    case = make_case(11, "Osaka")
    first = state_of(case.pre)

    def age(layer: Layer) -> Layer:
        evm = EVM(case.fork, state=layer)
        evm.set_block(**block_of(case, evm.schedule))
        for fields in case.transactions:
            run_transaction(evm, fields)
        return evm.state

    with ThreadPoolExecutor(THREADS) as pool:
        layers = [first] * THREADS
        for _ in range(50):
            layers = list(pool.map(age, reversed(layers)))
    assert len({layer.state_root() for layer in layers}) == 1
