"""Tests simulation results beyond the standard: state diff, asset changes, access list."""

from typing import Any

import pytest

import fastevm
from fastevm import Layer
from fastevm.core.execution.transaction.transaction import sign_authorization
from fastevm.core.simulation.asset_changes import (
    APPROVAL,
    APPROVAL_FOR_ALL,
    TRANSFER,
    TRANSFER_BATCH,
    TRANSFER_SINGLE,
    asset_changes,
)
from fastevm.core.simulation.values import SimulatedLog
from fastevm.simulate import AccountChange, AssetChange, CallOutcome, SimulationError, simulate_many

A, B, TOKEN, FAKE, FAILING = (byte * 20 for byte in (b"\xa1", b"\xb0", b"\xc0", b"\xd0", b"\xe0"))
# A token. The balance of a holder is in the slot whose number is its address. Calldata: to, amount.
BOOKS = bytes.fromhex("602035803354033355805f3554015f35555f52")
LOGS = bytes.fromhex("5f35337f") + TRANSFER + bytes.fromhex("60205fa300")
ONLY_LOGS = bytes.fromhex("6020355f52") + LOGS
NUMBER_OF_A = int.from_bytes(A, "big")
NUMBER_OF_B = int.from_bytes(B, "big")
STATE = Layer.of(
    {
        A: {"balance": 1000, "nonce": 4},
        TOKEN: {"code": BOOKS + LOGS, "storage": {NUMBER_OF_A: 70}},
        FAKE: {"code": ONLY_LOGS},
        FAILING: {"code": bytes.fromhex("60015f555f5ffd")},
    }
)
ALL = {"returnStateDiff": True, "returnAssetChanges": True, "returnAccessList": True}


def word(number: int) -> bytes:
    return number.to_bytes(32, "big")


def padded(address: bytes) -> bytes:
    return address.rjust(32, b"\0")


def run(*calls: Any, **flags: bool) -> list[CallOutcome]:
    payload = {"blockStateCalls": [{"calls": list(calls)}], **(flags or ALL)}
    return list(fastevm.simulate(STATE, payload)[0].calls)


def transfer(token: bytes, amount: int) -> dict[str, Any]:
    return {"from": A, "to": token, "data": padded(B) + word(amount)}


def test_nothing_is_gathered_unless_asked_for() -> None:
    (outcome,) = run(transfer(TOKEN, 5), validation=False)
    assert outcome.extras is None
    (outcome,) = run(transfer(TOKEN, 5), returnAccessList=True)
    assert outcome.extras is not None
    assert outcome.extras.state_diff is None
    assert outcome.extras.asset_changes is None


def test_the_state_diff_is_that_of_each_call() -> None:
    first, second = run(transfer(TOKEN, 20), {"from": A, "to": B, "value": 300, "gas": 21_000})
    assert first.extras and second.extras
    assert first.extras.state_diff == {
        A: AccountChange(nonce=(4, 5)),
        TOKEN: AccountChange(storage={NUMBER_OF_A: (70, 50), NUMBER_OF_B: (0, 20)}),
    }
    assert second.extras.state_diff == {
        A: AccountChange(balance=(1000, 700), nonce=(5, 6)),
        B: AccountChange(balance=(0, 300)),
    }


def test_a_failed_call_changes_the_nonce_alone() -> None:
    (outcome,) = run({"from": A, "to": FAILING})
    assert outcome.extras is not None
    assert outcome.extras.state_diff == {A: AccountChange(nonce=(4, 5))}
    assert outcome.extras.asset_changes == ()


def test_a_created_contract_shows_its_code() -> None:
    (outcome,) = run({"from": A, "data": bytes.fromhex("60fe5f5360015ff3")})
    assert outcome.created is not None and outcome.extras is not None
    assert outcome.extras.state_diff is not None and outcome.extras.asset_changes is not None
    change = outcome.extras.state_diff[outcome.created]
    assert change == AccountChange(nonce=(0, 1), code=(b"", b"\xfe"))
    assert AssetChange(kind="code", address=outcome.created) in outcome.extras.asset_changes


def test_token_transfers_are_netted_and_held_against_storage() -> None:
    honest, fake = run(transfer(TOKEN, 20), transfer(FAKE, 20))
    assert honest.extras and fake.extras
    wanted = [("erc20", A, -20), ("erc20", B, 20)]
    for outcome, token, verified in ((honest, TOKEN, True), (fake, FAKE, False)):
        assert outcome.extras and outcome.extras.asset_changes is not None
        found = outcome.extras.asset_changes
        assert [(c.kind, c.address, c.change) for c in found] == wanted
        assert {(c.token, c.verified) for c in found} == {(token, verified)}


def test_a_delegation_names_its_target() -> None:
    key = (7).to_bytes(32, "big")
    signed = sign_authorization(key, chain_id=1, address=TOKEN, nonce=0)
    listed = {"chainId": 1, "address": TOKEN, "nonce": 0, "yParity": signed.y_parity,
              "r": signed.r, "s": signed.s}  # fmt: skip
    (outcome,) = run({"from": A, "to": B, "authorizationList": [listed]})
    assert outcome.extras and outcome.extras.asset_changes
    (change,) = outcome.extras.asset_changes
    assert (change.kind, change.counterparty) == ("delegation", TOKEN)
    assert change.address.hex() == "d41c057fd1c78805aac12b0a94a405c0461a6fbb"


def test_the_access_list_makes_the_call_cheaper_or_equal_and_nothing_cold() -> None:
    (outcome,) = run(transfer(TOKEN, 20))
    assert outcome.extras and outcome.extras.access_list is not None
    entries = dict(outcome.extras.access_list)
    assert entries[TOKEN] == tuple(sorted((NUMBER_OF_A, NUMBER_OF_B)))
    listed = [{"address": TOKEN, "storageKeys": [word(s) for s in entries[TOKEN]]}]
    (again,) = run(transfer(TOKEN, 20) | {"accessList": listed})
    cold, listing = 2 * 2100 - 2 * 100, 2400 + 2 * 1900
    assert again.gas_used == outcome.gas_used + listing - cold


def test_the_call_tree_names_the_reason_of_an_inner_revert() -> None:
    # the outer contract calls the inner contract, which reverts with its input, and continues
    outer, inner = b"\x51" * 20, b"\x52" * 20
    reason = bytes.fromhex("4e487b71") + word(0x11)
    state = Layer.of(
        {
            outer: {
                "code": bytes.fromhex("365f5f375f5f365f5f73") + inner + bytes.fromhex("5af100")
            },
            inner: {"code": bytes.fromhex("365f5f37365ffd")},
        }
    )
    call = {"from": A, "to": outer, "data": reason}
    payload = {"blockStateCalls": [{"calls": [call, {"from": A, "to": B}]}], "returnCallTree": True}
    first, second = fastevm.simulate(state, payload)[0].calls
    assert first.extras and first.extras.call_tree
    tree = first.extras.call_tree
    assert (tree.kind, tree.caller, tree.address, tree.error) == ("CALL", A, outer, None)
    (below,) = tree.calls
    assert (below.caller, below.address, below.data) == (outer, inner, reason)
    assert (below.error, below.reason) == (
        "execution reverted",
        "arithmetic underflow or overflow",
    )
    assert second.extras and second.extras.call_tree and second.extras.call_tree.calls == ()


def test_a_call_tree_that_grows_too_large_is_refused() -> None:
    # calls itself repeatedly with one megabyte of input
    code = bytes.fromhex("5f5f620f42405f5f305af15000")
    payload = {
        "blockStateCalls": [{"calls": [{"from": A, "to": B, "gas": 40_000_000}]}],
        "returnCallTree": True,
    }
    with pytest.raises(SimulationError) as caught:
        fastevm.simulate(Layer.of({B: {"code": code}}), payload)
    assert caught.value.reason == "trace_limit"


def log(token: bytes, topics: tuple[bytes, ...], data: bytes) -> SimulatedLog:
    return SimulatedLog(token, topics, data, 0, False)


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        (
            log(TOKEN, (TRANSFER, padded(A), padded(B), word(9)), b""),
            [("erc721", A, -1, 9, None), ("erc721", B, 1, 9, None)],
        ),
        (
            log(TOKEN, (TRANSFER_SINGLE, padded(A), padded(A), padded(B)), word(3) + word(8)),
            [("erc1155", A, -8, 3, None), ("erc1155", B, 8, 3, None)],
        ),
        (
            log(
                TOKEN,
                (TRANSFER_BATCH, padded(A), padded(bytes(20)), padded(B)),
                b"".join(map(word, (64, 160, 2, 1, 2, 2, 10, 20))),
            ),
            [("erc1155", B, 10, 1, None), ("erc1155", B, 20, 2, None)],
        ),
        (log(TOKEN, (APPROVAL, padded(A), padded(B)), word(6)), [("approval", A, 6, None, B)]),
        (
            log(TOKEN, (APPROVAL, padded(A), padded(B), word(2)), b""),
            [("approval", A, 1, 2, B)],
        ),
        (
            log(TOKEN, (APPROVAL_FOR_ALL, padded(A), padded(B)), word(1)),
            [("approvalForAll", A, 1, None, B)],
        ),
        (log(TOKEN, (TRANSFER, padded(A), padded(A)), word(5)), []),
        (log(TOKEN, (TRANSFER, padded(A)), word(5)), []),
        (log(TOKEN, (TRANSFER_BATCH, word(0), word(0), word(0)), word(2**255) * 2), []),
        (log(TOKEN, (), b""), []),
    ],
)
def test_logs_of_every_token_standard_are_read(entry: SimulatedLog, wanted: list[Any]) -> None:
    found = asset_changes([entry], {})
    assert [(c.kind, c.address, c.change, c.token_id, c.counterparty) for c in found] == wanted


def test_an_owner_in_storage_verifies_a_unique_token() -> None:
    entry = log(TOKEN, (TRANSFER, padded(A), padded(B), word(9)), b"")
    diff = {TOKEN: AccountChange(storage={9: (NUMBER_OF_A, NUMBER_OF_B)})}
    assert [c.verified for c in asset_changes([entry], diff)] == [True, True]


def test_batches_gather_them_too() -> None:
    payload = {"blockStateCalls": [{"calls": [transfer(TOKEN, 20)]}], **ALL}
    (result,) = simulate_many(STATE, [payload], threads=1)
    assert list(result.calls) == run(transfer(TOKEN, 20))
