"""Tests how endpoints' errors are classified by their texts."""

import pytest

from fastevm import EVM
from fastevm.fork.refusals import (
    is_limited,
    is_unsupported,
    means_bad_block_parameter,
    means_no_block,
    means_no_state,
)
from fastevm.rpc_client.messages import RpcRefusal

LIMITED = [
    (429, "Your app has exceeded its compute units per second capacity"),
    (-32005, "daily request count exceeded, request rate limited"),
    (-32029, "Too Many Requests"),
    (-32007, "50/second request limit reached - reduce calls per second"),
    (-32000, "Public RPC Rate Limit Hit, limit will reset in 60 seconds"),
    (15, "Too many request, try again later"),
]
UNSUPPORTED = [
    (-32601, "the method debug_traceCall does not exist/is not available"),
    (-32600, "debug_traceCall is not available on the Free tier - upgrade to Pay As You Go"),
    (-32601, "Unsupported method: debug_traceCall"),
    (-32601, "the method debug_traceBlockByHash is not found"),
    (-32000, "Method eth_getBlockReceipts not found"),
    (-32000, "this method is available to archive plans only: upgrade"),
    (403, "forbidden"),
    (-32000, "rpc method is not whitelisted"),
    (-32004, "method not supported"),
]
NO_STATE = [
    (-32000, "missing trie node 3a9 (path ) state 0x3a9 is not available, not found"),
    (-32000, "required historical state unavailable (reexec=128)"),
    (4444, "state at block #123 is pruned"),
    (-32000, "historical state 77aa is not available"),
    (-32002, "No state available for block 0xabc"),
    (-32603, "distance to target block exceeds maximum proof window"),
]
NO_BLOCK = [
    (-32000, "header not found"),
    (-32000, "header for hash not found"),
    (-32001, "block not found: hash 0xabc"),
    (-32001, "Unknown block"),
    (-39001, "Unknown block"),
    (-32602, "BlockOutOfRangeError: block height is 5 but requested was 7"),
]
ANSWERS = [
    (3, "execution reverted: rate limit exceeded"),
    (-32000, "insufficient funds for gas * price + value"),
    (-32005, "query returned more than 10000 results"),
    (-32602, "block range is too large"),
]
EVERY = [
    (is_limited, LIMITED), (is_unsupported, UNSUPPORTED), (means_no_state, NO_STATE),
    (means_no_block, NO_BLOCK),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "message", "meaning"),
    [(code, message, meaning) for meaning, texts in EVERY for code, message in texts],
)
def test_an_error_has_one_meaning(code: int, message: str, meaning: object) -> None:
    refusal = RpcRefusal(code, message)
    assert [item for item, _ in EVERY if item(refusal)] == [meaning]


@pytest.mark.parametrize(("code", "message"), ANSWERS)
def test_what_a_call_itself_met_has_none_of_these_meanings(code: int, message: str) -> None:
    refusal = RpcRefusal(code, message)
    assert not [item for item, _ in EVERY if item(refusal)]


@pytest.mark.parametrize(
    ("code", "message", "bad"),
    [
        (-32602, "invalid argument 1: json: cannot unmarshal object into Go value", True),
        (-32602, "Invalid params: expected a block number", True),
        (-32602, "header for hash not found", False),
        (-32000, "execution timeout", False),
    ],
)  # fmt: skip
def test_a_block_by_hash_that_is_not_understood_is_reported_from_one_unknown(
    code: int, message: str, bad: bool
) -> None:
    assert means_bad_block_parameter(RpcRefusal(code, message)) is bad


def test_results_have_no_meaning() -> None:
    for answer in (None, "0x", [], {"error": "rate limit"}):
        assert not is_limited(answer)
        assert not is_unsupported(answer)


def test_a_misspelt_option_of_a_fork_suggests_the_nearest() -> None:
    with pytest.raises(TypeError, match=r"EVM\.fork has no option 'chache': did you mean 'cache'"):
        EVM.fork("http://127.0.0.1:1", chache=False)
    with pytest.raises(TypeError, match=r"no option 'tx_indx': did you mean 'tx_index'"):
        EVM.fork("http://127.0.0.1:1", tx_indx=1)
