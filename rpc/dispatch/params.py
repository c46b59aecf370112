"""Parameters that several methods share."""

from typing import Any, Final

from fastevm.rpc.block_id import (
    LATEST_BLOCK,
    PENDING_BLOCK,
    BlockId,
    decode_block,
    decode_count,
    decode_number_or_tag,
    decode_number_tag_or_int,
)
from fastevm.rpc.dialect import Dialect
from fastevm.rpc.dispatch.registry import Param
from fastevm.rpc_types.quantity import (
    DecodeError,
    decode_address,
    decode_bool,
    decode_bytes,
    decode_hash,
    decode_uint64,
    json_kind,
)

ADDRESS: Final = Param(decode_address)
HASH: Final = Param(decode_hash)
DATA: Final = Param(decode_bytes)
INDEX: Final = Param(decode_uint64)
FULL: Final = Param(decode_bool, optional=True, default=False)

NUMBER_OR_TAG: Final = Param(decode_number_or_tag)
BLOCK: Final = Param(decode_block)
BLOCK_OR_LATEST: Final = Param(decode_block, optional=True, default=LATEST_BLOCK)
INTERFACE_BLOCK: Final = Param(decode_block, default=LATEST_BLOCK, required_by_interface=True)


def _next_block(dialect: Dialect) -> BlockId:
    """Return the default block for estimates and access lists."""
    return PENDING_BLOCK if dialect.estimates_on_pending else LATEST_BLOCK


NEXT_BLOCK: Final = Param(decode_block, optional=True, default_in=_next_block)


COUNT: Final = Param(decode_count)
NUMBER_TAG_OR_INT: Final = Param(decode_number_tag_or_int)


def decode_text(value: Any) -> str:
    """Decode a string."""
    if not isinstance(value, str):
        raise DecodeError(f"json: cannot unmarshal {json_kind(value)} into Go value of type string")
    return value


TEXT: Final = Param(decode_text)
