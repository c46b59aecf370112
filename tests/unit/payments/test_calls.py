"""Tests call data and topics: selectors of the deployed tokens."""

import pytest
from eth_abi.abi import encode

from fastevm.payments import Authorization, Event, Kind, Signature, sign
from fastevm.payments.calls import (
    balance_data,
    cancel_data,
    capture_data,
    separator_data,
    state_data,
    wallet_data,
)
from fastevm.payments.erc6492 import MULTICALL, calls_in, in_one_call, results_of

from .test_authorization import KEY, PAYER, SEPOLIA, TERMS

RECEIVE = Authorization(SEPOLIA, TERMS)
TRANSFER = Authorization(SEPOLIA, TERMS, Kind.TRANSFER)
BY_KEY, LONG = sign(RECEIVE, KEY), Signature(bytes(range(70)))
CASES = {
    "ef55bec6": capture_data(RECEIVE, BY_KEY),
    "88b7ab63": capture_data(RECEIVE, LONG),
    "e3ee160e": capture_data(TRANSFER, BY_KEY),
    "cf092995": capture_data(TRANSFER, LONG),
    "5a049a70": cancel_data(RECEIVE.cancellation, BY_KEY),
    "b7b72899": cancel_data(RECEIVE.cancellation, LONG),
    "e94a0102": state_data(PAYER, TERMS.nonce),
    "70a08231": balance_data(PAYER),
    "3644e515": separator_data(),
    "1626ba7e": wallet_data(RECEIVE.digest, BY_KEY),
}


@pytest.mark.parametrize("selector", CASES)
def test_selectors_are_those_of_deployed_tokens(selector: str) -> None:
    assert CASES[selector][:4].hex() == selector


def test_arguments_follow_in_the_order_of_the_terms() -> None:
    words = CASES["ef55bec6"][4:]
    v, r, s = BY_KEY.vrs
    assert len(words) == 9 * 32
    assert words[2 * 32 : 3 * 32] == TERMS.value.to_bytes(32, "big")
    assert words[5 * 32 :] == TERMS.nonce + v.to_bytes(32, "big") + r + s


@pytest.mark.parametrize(
    ("event", "topic"),
    [
        (Event.TRANSFER, "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"),
        (Event.USED, "98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5"),
        (Event.CANCELED, "1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81"),
        (Event.MEMO, "6989f5818dcfd11f8cd53b27c94cec33dae1589735f03e639cba54553a1825e8"),
        (
            Event.PAYMENT_CAPTURED,
            "099bbc1f94190f78ec3955750f0e155226c32f3b3db90885d51f8737c7c0ec76",
        ),
        (Event.PAYOUT_SENT, "e50d87119ceb02f3aa30a83e96b007c343e37d38e4f720be35f408d0477995fb"),
    ],
)
def test_topics_are_those_of_deployed_contracts(event: Event, topic: str) -> None:
    assert event.topic == "0x" + topic


def test_calls_of_many_come_out_as_they_went_in() -> None:
    calls = [("0x" + "11" * 20, b"one"), (MULTICALL, b"")]
    for may_fail in (True, False):
        to, data = in_one_call(calls, may_fail=may_fail)
        assert to == MULTICALL
        assert calls_in(data) == calls
    assert results_of(encode(["(bool,bytes)[]"], [[(True, b"x"), (False, b"")]])) == [
        (True, b"x"), (False, b""),
    ]  # fmt: skip
    for odd in (b"", b"\xff" * 32, b"\0" * 31):
        assert results_of(odd) is None
