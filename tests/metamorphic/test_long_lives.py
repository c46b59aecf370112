"""Tests that a state after hundreds of transactions equals a state built from its accounts."""

from collections.abc import Iterator

import pytest

from fastevm.core.state.layer import Layer
from fastevm.evm.machine import EVM
from tests.differential.cases import Case, make_case
from tests.differential.machine import block_of, dump, run_transaction, state_of

from .relations import account_fields

# Number of successive layers after which a root is computed even if nobody asks for one.
WAIT_SECONDS = 256
LIFE = 2 * WAIT_SECONDS + 50
FORKS = ("Frontier", "London", "Osaka")


def cases_of(fork: str) -> Iterator[Case]:
    return (make_case(seed, fork) for seed in range(2_000_000, 2_000_000 + LIFE))


def live(fork: str, *, roots_every: int) -> Layer:
    """Runs many cases on one machine. Returns the final state.

    The accounts of each case are added before the case runs. Every ``roots_every`` cases, the root
    is computed.
    """
    evm = EVM(fork)
    for age, case in enumerate(cases_of(fork)):
        evm.set_block(**block_of(case, evm.schedule))
        evm.state = evm.state.with_accounts(account_fields(state_of(case.pre)))
        for fields in case.transactions:
            run_transaction(evm, fields)
        if roots_every and age % roots_every == 0:
            evm.state.state_root()
    return evm.state


@pytest.mark.parametrize("fork", FORKS)
def test_the_root_does_not_depend_on_when_it_was_asked_for(fork: str) -> None:
    late, often = live(fork, roots_every=0), live(fork, roots_every=7)
    assert dump(late) == dump(often)
    copy = Layer.of(account_fields(late))
    assert late.state_root() == often.state_root() == copy.state_root()


def test_old_layers_stay_as_they_were() -> None:
    evm = EVM("Osaka")
    kept: list[tuple[Layer, object]] = []
    for case in list(cases_of("Osaka"))[:60]:
        evm.set_block(**block_of(case, evm.schedule))
        evm.state = evm.state.with_accounts(account_fields(state_of(case.pre)))
        for fields in case.transactions:
            run_transaction(evm, fields)
        kept.append((evm.state, dump(evm.state)))
    evm.state.state_root()
    for layer, before in kept:
        assert dump(layer) == before
        assert layer.state_root() == Layer.of(account_fields(layer)).state_root()
