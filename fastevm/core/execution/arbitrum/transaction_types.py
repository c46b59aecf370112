"""Arbitrum's unsigned transaction types: messages from L1, retries and block starts.

An envelope is the type and an RLP list of the fields in the order of `LAYOUTS` (EIP-2718). Source:
Arbitrum's go-ethereum, ``core/types/arb_types.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from fastevm.core.primitives import rlp

DEPOSIT, UNSIGNED, CONTRACT, RETRY, SUBMIT_RETRYABLE, INTERNAL = 0x64, 0x65, 0x66, 0x68, 0x69, 0x6A
CLASSIC: Final = 0x78
"""A transaction of Arbitrum Classic (Arbitrum One before block 22,207,818).

Its hash cannot be computed from its fields.
"""

RETRYABLE_TX: Final = bytes.fromhex("000000000000000000000000000000000000006e")
ARBOS: Final = bytes.fromhex("00000000000000000000000000000000000a4b05")
SUBMIT_SELECTOR: Final = bytes.fromhex("c9f95d32")
WORD: Final = 32


class Field(NamedTuple):
    """A field of an envelope.

    ``form``: one character, from which the decoder in C knows how to decode the field.

    - c chain id, i id of 32 bytes, f sender, v value, n nonce, p fee cap, g gas limit, d call data
    - r recipient, t recipient or nothing
    - fields that only the JSON form shows: w integer, a address, o address or nothing, b bytes
    """

    name: str
    json: str
    form: str


_CHAIN_ID = Field("chain_id", "chainId", "c")
_REQUEST_ID = Field("request_id", "requestId", "i")
_SENDER = Field("sender", "from", "f")
_NONCE = Field("nonce", "nonce", "n")
_FEE_CAP = Field("max_fee_per_gas", "maxFeePerGas", "p")
_GAS = Field("gas_limit", "gas", "g")
_TO = Field("to", "to", "t")
_VALUE = Field("value", "value", "v")
_DATA = Field("data", "input", "d")
_CALL = (_FEE_CAP, _GAS, _TO, _VALUE, _DATA)

LAYOUTS: Final[Mapping[int, tuple[Field, ...]]] = MappingProxyType(
    {
        DEPOSIT: (_CHAIN_ID, _REQUEST_ID, _SENDER, Field("to", "to", "r"), _VALUE),
        UNSIGNED: (_CHAIN_ID, _SENDER, _NONCE, *_CALL),
        CONTRACT: (_CHAIN_ID, _REQUEST_ID, _SENDER, *_CALL),
        RETRY: (
            _CHAIN_ID,
            _NONCE,
            _SENDER,
            *_CALL,
            Field("ticket_id", "ticketId", "i"),
            Field("refund_to", "refundTo", "a"),
            Field("max_refund", "maxRefund", "w"),
            Field("submission_fee_refund", "submissionFeeRefund", "w"),
        ),
        SUBMIT_RETRYABLE: (
            _CHAIN_ID,
            _REQUEST_ID,
            _SENDER,
            Field("l1_base_fee", "l1BaseFee", "w"),
            Field("deposit_value", "depositValue", "w"),
            _FEE_CAP,
            _GAS,
            Field("retry_to", "retryTo", "o"),
            Field("retry_value", "retryValue", "w"),
            Field("beneficiary", "beneficiary", "a"),
            Field("max_submission_fee", "maxSubmissionFee", "w"),
            Field("refund_to", "refundTo", "a"),
            Field("retry_data", "retryData", "b"),
        ),
        INTERNAL: (_CHAIN_ID, _DATA),
    }
)
"""The fields of the envelope of each type, in order, by type."""

INTEGERS: Final = frozenset("cvnpgw")
OPTIONAL: Final = frozenset("to")
FIXED_BYTES: Final = MappingProxyType({"i": 32, "f": 20, "r": 20, "a": 20, "t": 20, "o": 20})


def encode(kind: int, fields: Mapping[str, Any]) -> bytes:
    """Returns the envelope of a transaction of type ``kind``.

    ``fields``: values by the names of `LAYOUTS`; integers, bytes, or None for no recipient. Raises
    ValueError if a field is missing.
    """
    missing = [field.name for field in LAYOUTS[kind] if field.name not in fields]
    if missing:
        raise ValueError(f"a transaction of type {kind:#x} needs {', '.join(missing)}")
    items = [fields[field.name] for field in LAYOUTS[kind]]
    return bytes([kind]) + rlp.encode([b"" if item is None else item for item in items])


def fields_of(raw: bytes) -> dict[str, Any]:
    """Returns the fields of a valid envelope by name."""
    items = rlp.decode(raw[1:])
    found: dict[str, Any] = {}
    for field, item in zip(LAYOUTS[raw[0]], items, strict=True):
        assert isinstance(item, bytes)
        found[field.name] = item
        if field.form in INTEGERS:
            found[field.name] = int.from_bytes(item, "big")
        elif not item and field.form in OPTIONAL:
            found[field.name] = None
    return found


def input_of_submission(raw: bytes) -> bytes:
    """Encodes a submission as call data of ArbRetryableTx.submitRetryable."""
    fields = fields_of(raw)
    names = (
        "request_id", "l1_base_fee", "deposit_value", "retry_value", "max_fee_per_gas", "gas_limit",
        "max_submission_fee", "refund_to", "beneficiary", "retry_to",
    )  # fmt: skip
    words = [_word(fields[name]) for name in names]
    data: bytes = fields["retry_data"]
    words.append(_word(WORD * (len(names) + 1)))
    words.append(_word(len(data)))
    return SUBMIT_SELECTOR + b"".join(words) + data + bytes(-len(data) % WORD)


def _word(value: int | bytes | None) -> bytes:
    if isinstance(value, int):
        return value.to_bytes(WORD, "big")
    return (value or b"").rjust(WORD, b"\0")
