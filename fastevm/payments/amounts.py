"""Validation of numbers and texts from callers: token units, decimal amounts, printable text."""

import re
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from fastevm.payments.errors import InvalidTerms

UINT256_MAX: Final = 2**256 - 1
LONGEST_NUMBER: Final = 78  # digits of 2**256 - 1
MOST_DECIMALS: Final = 77
LONGEST_SHOWN: Final = 40  # characters of a wrong amount in an error

_DECIMAL: Final = re.compile(r"[0-9]{1,40}\.[0-9]{0,40}")


def integer(value: Any, name: str, *, least: int = 0, most: int = UINT256_MAX) -> int:
    """Returns a whole number given as an int or as a string of decimal digits.

    Raises InvalidTerms, which names the field, if the value is not a whole number or is outside
    ``least`` to ``most``. Booleans are refused, and so are floats, because they lose digits.
    """
    number = value
    if isinstance(value, str) and value.isascii() and value.isdigit():
        number = int(value) if len(value) <= LONGEST_NUMBER else most + 1
    if isinstance(number, bool) or not isinstance(number, int):
        found = type(value).__name__
        if isinstance(value, str) and _DECIMAL.fullmatch(value):
            found = f"{value!r}: Token.units({value!r}) converts it to token units"
        raise InvalidTerms(f"{name}: expected a whole number or a string of digits, found {found}")
    if not least <= number <= most:
        shown = number if abs(number) <= UINT256_MAX else "more"
        limit = "2**256 - 1" if most == UINT256_MAX else most
        raise InvalidTerms(f"{name}: expected {least} to {limit}, found {shown}")
    return int(number)


def amount(amount: str | int | Decimal, decimals: int) -> int:
    """Converts a decimal amount to token units: ``amount("12.50", 6)`` is 12,500,000.

    Raises InvalidTerms if ``amount`` is a float, is negative or not a number, has more decimals
    than the token, or exceeds 2**256 - 1 units.
    """
    decimals = integer(decimals, "decimals", most=MOST_DECIMALS)
    if isinstance(amount, bool) or not isinstance(amount, str | int | Decimal):
        raise InvalidTerms(f"amount: expected a string or Decimal, found {type(amount).__name__}")
    if isinstance(amount, str) and not (amount.isascii() and amount.replace(".", "", 1).isdigit()):
        raise InvalidTerms(
            f"amount: expected digits and a point, such as 2.50, found {_shown(amount)}"
        )
    try:
        number = Decimal(amount)
    except InvalidOperation:
        raise InvalidTerms(
            f"amount: expected digits and a point, such as 2.50, found {_shown(amount)}"
        ) from None
    if not number.is_finite() or number < 0:
        raise InvalidTerms("amount: expected a finite number >= 0")
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    shift = exponent + decimals
    whole = int("".join(map(str, digits)) or "0")
    if shift < 0:
        whole, rest = divmod(whole, 10**-shift)
        if rest:
            most = f"at most {decimals} decimals" if decimals else "a whole number"
            raise InvalidTerms(f"amount: expected {most}, found {_shown(str(amount))}")
        shift = 0
    if shift > LONGEST_NUMBER:
        raise InvalidTerms("amount: expected at most 2**256 - 1 units")
    return integer(whole * 10**shift, "amount")


def _shown(value: str | int | Decimal) -> str:
    """Escapes and shortens an invalid amount for an error text."""
    return ascii(str(value)[:LONGEST_SHOWN])


def text(value: Any, name: str, *, longest: int, least: int = 0, one_line: bool = False) -> str:
    """Returns ``value`` if it is ``least`` to ``longest`` printable characters or newlines.

    ``one_line`` also refuses newlines, because ids of new orders must not contain them. SQLite and
    PostgreSQL can store every accepted text. Raises InvalidTerms, which names the field, for other
    values.
    """
    if not isinstance(value, str):
        raise InvalidTerms(f"{name}: expected text, found {type(value).__name__}")
    if not least <= len(value) <= longest:
        raise InvalidTerms(f"{name}: expected {least} to {longest} characters, found {len(value)}")
    if not all(char.isprintable() or char == "\n" for char in value):
        raise InvalidTerms(f"{name}: expected printable characters and newlines only")
    if one_line and "\n" in value:
        raise InvalidTerms(f"{name}: expected one line")
    return value
