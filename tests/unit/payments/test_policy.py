"""Tests fees and limits of a policy, and signing of transactions."""

import pickle

import pytest
from eth_account import Account

from fastevm.payments import InvalidTerms, KeySigner, Policy
from fastevm.payments.policy import GWEI, MOST_BATCH
from fastevm.payments.signer import fields_of

from .test_authorization import KEY, PAYER

FIELDS = {
    "chainId": 1, "nonce": 7, "gas": 21_000, "to": PAYER, "value": 3, "data": "0xabcd",
    "maxFeePerGas": 10, "maxPriorityFeePerGas": 2,
}  # fmt: skip


def test_fees_follow_the_base_fee_up_to_a_limit() -> None:
    policy = Policy(tip=2, base_fee_factor=2, most_fee=100)
    assert policy.fees(10, 9) == (22, 2), "the merchant's own tip, whatever others pay"
    assert policy.fees(1000, 9) == (100, 2)
    assert Policy(most_fee=100).fees(10, 9) == (29, 9)


@pytest.mark.parametrize("old", [(1, 1), (10, 9), (GWEI, 1), (33, 33)])
def test_a_replacement_raises_both_fees_by_more_than_a_tenth(old: tuple[int, int]) -> None:
    bumped = Policy(tip=0).bumped(old, (0, 0))
    assert bumped is not None
    assert all(new * 10 >= fee * 11 for new, fee in zip(bumped, old, strict=True))
    assert bumped[1] <= bumped[0]


def test_a_replacement_is_not_dearer_than_the_limit() -> None:
    assert Policy(most_fee=100, tip=1).bumped((95, 1), (21, 1)) is None


def test_policies_that_cannot_work_are_refused() -> None:
    for wrong in (
        {"depth": 0},
        {"depth": "latest"},
        {"overlap": 0},
        {"range_blocks": 0},
        {"bump_percent": 9},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Policy(**wrong)  # type: ignore[arg-type]


async def test_a_signed_transaction_is_read_back_and_signed_anew() -> None:
    signer = KeySigner(KEY)
    raw = await signer.sign_transaction(FIELDS)
    assert Account.recover_transaction(raw) == signer.address == PAYER
    assert await signer.sign_transaction(fields_of(raw)) == raw


def test_a_signer_does_not_show_its_key() -> None:
    signer = KeySigner(KEY)
    assert repr(signer) == f"<KeySigner of {PAYER}>"
    with pytest.raises(TypeError):
        pickle.dumps(signer)
    with pytest.raises(InvalidTerms):
        KeySigner("0x1234")


@pytest.mark.parametrize("batch", [0, -1, MOST_BATCH + 1])
def test_how_many_captures_go_together_has_limits(batch: int) -> None:
    with pytest.raises(ValueError, match="batch"):
        Policy(batch=batch)
    assert Policy(batch=MOST_BATCH).batch == MOST_BATCH
