"""Decodes hexadecimal values of JSON-RPC, with geth's error messages.

Every decoder takes a parsed JSON value and returns a Python value, or raises `DecodeError`.
``field`` names the position of the value in an object, such as "TransactionArgs.to".
"""

from typing import Any, Final

TEXT_SHOWN: Final = 256  # characters of the caller's text quoted in an error
U64_DIGITS: Final = 16
U256_DIGITS: Final = 64
_HEX_DIGITS: Final = frozenset("0123456789abcdefABCDEF")


class DecodeError(ValueError):
    """An invalid JSON value. The text is the reason."""


def decode_uint64(value: Any, *, field: str = "") -> int:
    """Decodes a quantity of at most 64 bits."""
    return _typed_quantity(value, U64_DIGITS, "hexutil.Uint64", field)


def decode_uint256(value: Any, *, field: str = "") -> int:
    """Decodes a quantity of at most 256 bits."""
    return _typed_quantity(value, U256_DIGITS, "hexutil.Big", field)


def decode_address(value: Any, *, field: str = "") -> bytes:
    """Decodes 20 bytes, in upper or lower case."""
    raw = _exact_hex(value, 42)
    if raw is not None:
        return raw
    return _typed_fixed(value, 20, "common.Address", field)


def decode_hash(value: Any, *, field: str = "") -> bytes:
    """Decodes 32 bytes."""
    raw = _exact_hex(value, 66)
    if raw is not None:
        return raw
    return _typed_fixed(value, 32, "common.Hash", field)


def decode_bytes(value: Any, *, field: str = "") -> bytes:
    """Decodes bytes of any length ("" and "0x" are empty)."""
    if not isinstance(value, str):
        raise _type_error("non-string", "hexutil.Bytes", field)
    reason = text_fault(value)
    if reason is not None:
        raise _type_error(reason, "hexutil.Bytes", field)
    return _unhex(value[2:], "hexutil.Bytes", field)


def decode_bool(value: Any, *, field: str = "") -> bool:
    """Decodes true or false."""
    if not isinstance(value, bool):
        raise _type_error(json_kind(value), "bool", field)
    return value


def decode_storage_slot(value: Any) -> tuple[int, int]:
    """Decodes a storage key leniently: 0x is optional, an odd length is allowed, at most 32 bytes.

    Returns the slot and the number of bytes given.
    """
    if not isinstance(value, str):
        raise _type_error(json_kind(value), "string", "")
    raw = _exact_hex(value, 66)
    if raw is not None:
        return int.from_bytes(raw, "big"), 32
    digits = value[2:] if value[:2] in ("0x", "0X") else value
    digits = "0" + digits if len(digits) % 2 else digits
    if len(digits) > U256_DIGITS:
        raise DecodeError(f"storage key too long (want at most 32 bytes): {shown(value)}")
    if not _HEX_DIGITS.issuperset(digits):
        raise DecodeError(f"invalid hex in storage key: {shown(value)}")
    return int(digits or "0", 16), len(digits) // 2


def parse_quantity(text: str, digits_limit: int = U64_DIGITS) -> int:
    """Parses 0x-hex without leading zeros and with at most ``digits_limit`` digits."""
    if not text:
        raise DecodeError("empty hex string")
    if text[:2] not in ("0x", "0X"):
        raise DecodeError("hex string without 0x prefix")
    digits = text[2:]
    if not digits:
        raise DecodeError('hex string "0x"')
    if digits[0] == "0" and len(digits) > 1:
        raise DecodeError("hex number with leading zero digits")
    if len(digits) > digits_limit:
        raise DecodeError(f"hex number > {digits_limit * 4} bits")
    if not _HEX_DIGITS.issuperset(digits):
        raise DecodeError("invalid hex string")
    return int(digits, 16)


def text_fault(text: str) -> str | None:
    """Returns why ``text`` is not 0x-hex of whole bytes, or None. Does not check the digits."""
    if not text:
        return None
    if text[:2] not in ("0x", "0X"):
        return "hex string without 0x prefix"
    if len(text) % 2:
        return "hex string of odd length"
    return None


def json_kind(value: Any) -> str:
    """Returns the name that Go's decoder gives to a JSON value's type."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    return "null" if value is None else "object"


def shown(text: str) -> str:
    """Quotes and truncates a caller's text for an error message."""
    cut = text if len(text) <= TEXT_SHOWN else text[:TEXT_SHOWN] + "..."
    return f'"{cut}"'


def object_fault(value: Any, kind: str, field: str = "") -> DecodeError:
    """Returns the error for a ``value`` that should be an object or array of type ``kind``."""
    return _type_error(json_kind(value), kind, field)


def _exact_hex(value: Any, length: int) -> bytes | None:
    """Decodes 0x-hex of this length, prefix included. Returns None for any other text."""
    if type(value) is str and len(value) == length and value[:2] == "0x":
        try:
            raw = bytes.fromhex(value[2:])
        except ValueError:
            return None
        if 2 * len(raw) + 2 == length:  # bytes.fromhex skips spaces, which change the length
            return raw
    return None


def _typed_quantity(value: Any, digits_limit: int, kind: str, field: str) -> int:
    if not isinstance(value, str):
        raise _type_error("non-string", kind, field)
    try:
        return parse_quantity(value, digits_limit)
    except DecodeError as fault:
        raise _type_error(str(fault), kind, field) from None


def _typed_fixed(value: Any, size: int, kind: str, field: str) -> bytes:
    if not isinstance(value, str):
        raise _type_error("non-string", kind, field)
    reason = text_fault(value)
    if reason is not None:
        raise _type_error(reason, kind, field)
    digits = value[2:]
    if len(digits) != 2 * size:
        raise DecodeError(f"hex string has length {len(digits)}, want {2 * size} for {kind}")
    return _unhex(digits, kind, field)


def _unhex(digits: str, kind: str, field: str) -> bytes:
    # bytes.fromhex skips spaces, so a result of the wrong size is an error as well
    try:
        raw = bytes.fromhex(digits)
    except ValueError:
        raw = b""
    if 2 * len(raw) != len(digits):
        raise _type_error("invalid hex string", kind, field)
    return raw


def _type_error(found: str, kind: str, field: str) -> DecodeError:
    where = f"struct field {field} of type" if field else "value of type"
    return DecodeError(f"json: cannot unmarshal {found} into Go {where} {kind}")
