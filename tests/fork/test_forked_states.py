"""Tests the pytest and conformance options that put a remote state below every state."""

import subprocess
import sys

import pytest

from fastevm.conformance import pre_states, state
from fastevm.conformance.pre_states import EMPTY, PRE, Recorded
from fastevm.conformance.runner import Apart
from fastevm.core.state.layer import Layer
from tests.max_wait import MAX_WAIT
from tests.shared_data import ROOT

SENDER, COUNTER = b"\x11" * 20, b"\xc0" * 20
ACCOUNTS = {
    SENDER: {"balance": 10**18},
    COUNTER: {"nonce": 1, "code": bytes.fromhex("6001545f5401600155"), "storage": {0: 2, 1: 40}},
}


def test_the_option_reaches_machines_and_layers() -> None:
    code = (
        "from tests import forked_states; forked_states.begin();"
        "from fastevm import EVM, Layer; from fastevm.core.state.layer import Layer as other;"
        "print(all(each.remote_state is not None for each in"
        " (EVM().state, EVM(state=None).state, Layer.empty(), other.of({}))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=MAX_WAIT
    )
    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize("where", [EMPTY, PRE])
def test_a_state_has_the_same_root_wherever_it_lies(where: str) -> None:
    with pre_states._states(where):
        layer = pre_states.layer_of(ACCOUNTS)
    assert layer.remote_state is not None
    assert pre_states.whole(layer).state_root() == Layer.of(ACCOUNTS).state_root()
    changed = layer.with_accounts({COUNTER: {"nonce": 1, "storage": {7: 9}}})
    expected = Layer.of(ACCOUNTS).with_accounts({COUNTER: {"nonce": 1, "storage": {7: 9}}})
    assert pre_states.whole(changed).state_root() == expected.state_root()


def test_a_state_is_known_anew() -> None:
    layer = Layer.remote(Recorded(ACCOUNTS))
    assert layer.storage(COUNTER, 1) == 40
    fresh = pre_states.anew(layer)
    assert layer.remote_state is not None and fresh.remote_state is not None
    assert fresh.remote_state.rounds == 0 < layer.remote_state.rounds


@pytest.mark.parametrize("account", [{}, {"balance": 1, "storage": {1: 1}}])
def test_what_cannot_be_read_remotely_is_set_apart(account: dict[str, object]) -> None:
    with pre_states._states(PRE):
        assert isinstance(pre_states.unreadable({SENDER: account}), Apart)
        assert pre_states.unreadable(ACCOUNTS) is None
    assert pre_states.unreadable({SENDER: account}) is None


def test_cases_are_wrapped_one_by_one() -> None:
    suite = pre_states.forked(PRE, state.cases)
    assert list(suite("empty.json", {})) == []
