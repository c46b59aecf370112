"""Tests validation of numbers: token units and decimal amounts, without loss of digits."""

from decimal import Decimal
from typing import Any

import pytest

from fastevm.payments import Domain, InvalidTerms, Terms, amount
from fastevm.payments.amounts import UINT256_MAX, integer, text

from .test_authorization import PAYER, SHOP


@pytest.mark.parametrize(
    ("value", "units"),
    [
        ("12.50", 12_500_000), ("0", 0), ("1.", 1_000_000), (".5", 500_000), (3, 3_000_000),
        (Decimal("0.000001"), 1), ("1.5000000", 1_500_000), (Decimal("1e3"), 10**9),
    ],
)  # fmt: skip
def test_amounts_for_people_are_units_of_the_token(value: Any, units: int) -> None:
    assert amount(value, 6) == units


@pytest.mark.parametrize(
    "value",
    [12.5, True, "1,5", "-1", "1e3", "", ".", " 1", "1.2345678", Decimal("NaN"), Decimal(-1), None,
     "9" * 90, "١"],
)  # fmt: skip
def test_what_is_no_exact_amount_is_refused(value: Any) -> None:
    with pytest.raises(InvalidTerms, match="amount"):
        amount(value, 6)


def test_whole_numbers_are_ints_or_digits() -> None:
    assert integer("12500000", "value") == 12_500_000
    assert integer(UINT256_MAX, "value") == UINT256_MAX
    for wrong in (12.5 * 10**6, True, "12.5", "0x10", "", None, -1, 2**256, "9" * 80, b"1"):
        with pytest.raises(InvalidTerms, match="value"):
            integer(wrong, "value")


@pytest.mark.parametrize("name", ["value", "valid_after", "valid_before"])
@pytest.mark.parametrize("wrong", [1.0, True, None, "soon"])
def test_terms_hold_whole_numbers_only(name: str, wrong: Any) -> None:
    usual: dict[str, Any] = {
        "payer": PAYER, "recipient": SHOP, "value": 1, "valid_after": 0, "valid_before": 9,
    }  # fmt: skip
    with pytest.raises(InvalidTerms, match=name):
        Terms(**{**usual, name: wrong})


def test_terms_of_digits_are_terms_of_numbers() -> None:
    terms = Terms(payer=PAYER, recipient=SHOP, value="7", valid_after="0", valid_before="9")  # type: ignore[arg-type]
    assert (terms.value, terms.valid_after, terms.valid_before) == (7, 0, 9)
    with pytest.raises(InvalidTerms, match="lifetime"):
        Terms.now(PAYER, SHOP, 1, lifetime=900.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidTerms, match="chain_id"):
        Domain("USD Coin", "2", True, PAYER)
    with pytest.raises(InvalidTerms, match="nonce"):
        Terms(payer=PAYER, recipient=SHOP, value=1, valid_after=0, valid_before=9, nonce="11" * 16)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["", "a" * 9, "a\0b", "a\x1b[1m", None, 7, "\ud800"])
def test_texts_are_such_as_every_store_keeps(wrong: Any) -> None:
    with pytest.raises(InvalidTerms, match="order_id"):
        text(wrong, "order_id", longest=8, least=1)


def test_a_wrong_amount_is_shown_with_what_would_be_right() -> None:
    with pytest.raises(InvalidTerms, match=r"such as 2\.50, found '2,50'"):
        amount("2,50", 6)
    with pytest.raises(InvalidTerms, match=r"at most 6 decimals, found '1\.2345678'"):
        amount("1.2345678", 6)
    with pytest.raises(InvalidTerms, match=r"value: .* found '12\.50': Token\.units\('12\.50'\)"):
        integer("12.50", "value")
    with pytest.raises(InvalidTerms) as raised:
        amount("\x1b[31m" * 50, 6)
    assert "\x1b" not in str(raised.value) and len(str(raised.value)) < 300
