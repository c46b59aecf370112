"""Numbers as callers give them: whole units of a token, or decimals as people write them."""

from decimal import Decimal, InvalidOperation
from typing import Any, Final

from fastevm.payments.errors import InvalidTerms

UINT256_MAX: Final = 2**256 - 1
LONGEST_NUMBER: Final = 78  # digits of 2**256 - 1
MOST_DECIMALS: Final = 77


def integer(value: Any, name: str, *, least: int = 0, most: int = UINT256_MAX) -> int:
    """A whole number from an int or from a string of decimal digits; InvalidTerms names the field.

    Floats lose digits and booleans are mistakes: both are refused, whatever they are equal to.
    """
    number = value
    if isinstance(value, str) and value.isascii() and value.isdigit():
        number = int(value) if len(value) <= LONGEST_NUMBER else most + 1
    if isinstance(number, bool) or not isinstance(number, int):
        kind = type(value).__name__
        raise InvalidTerms(f"{name}: expected a whole number or a string of digits, found {kind}")
    if not least <= number <= most:
        shown = number if abs(number) <= UINT256_MAX else "more"
        limit = "2**256 - 1" if most == UINT256_MAX else most
        raise InvalidTerms(f"{name}: expected {least} to {limit}, found {shown}")
    return int(number)


def amount(value: str | int | Decimal, decimals: int) -> int:
    """Units of a token from an amount for people: ``amount("12.50", 6)`` is 12,500,000.

    InvalidTerms for floats, for more decimals than the token has, and for what is no amount.
    """
    decimals = integer(decimals, "decimals", most=MOST_DECIMALS)
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise InvalidTerms(f"amount: expected a string or Decimal, found {type(value).__name__}")
    if isinstance(value, str) and not (value.isascii() and value.replace(".", "", 1).isdigit()):
        raise InvalidTerms("amount: expected digits and at most one point")
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise InvalidTerms("amount: expected digits and at most one point") from None
    if not number.is_finite() or number < 0:
        raise InvalidTerms("amount: expected a number that is not negative")
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    shift = exponent + decimals
    whole = int("".join(map(str, digits)) or "0")
    if shift < 0:
        whole, rest = divmod(whole, 10**-shift)
        if rest:
            raise InvalidTerms(f"amount: the token has {decimals} decimals")
        shift = 0
    if shift > LONGEST_NUMBER:
        raise InvalidTerms("amount: expected at most 2**256 - 1 units")
    return integer(whole * 10**shift, "amount")


def text(value: Any, name: str, *, longest: int, least: int = 0) -> str:
    """A text that every store can keep: of ``least`` to ``longest`` printable characters."""
    if not isinstance(value, str):
        raise InvalidTerms(f"{name}: expected text, found {type(value).__name__}")
    if not least <= len(value) <= longest:
        raise InvalidTerms(f"{name}: expected {least} to {longest} characters, found {len(value)}")
    if not all(one.isprintable() or one == "\n" for one in value):
        raise InvalidTerms(f"{name}: expected characters that can be shown")
    return value
