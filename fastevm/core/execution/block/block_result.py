"""The result of the execution of a block."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from fastevm.core.execution.types import HEADER_FIELDS, Receipt
from fastevm.core.state.layer import Layer


class BlockResult(Struct, frozen=True, kw_only=True):
    """The state after a block, and everything that the block's header commits to.

    - ``requests``: the non-empty EIP-7685 requests, type byte first
    - ``requests_hash``, ``blob_gas_used``, ``withdrawals_root``: None in forks without the field
    - ``access_list``: RLP of the block access list (EIP-7928); None in forks without access lists,
      or if the block was not executed

    Roots and hashes are 32 bytes.
    """

    layer: Layer
    state_root: bytes
    receipts: Sequence[Receipt]
    receipts_root: bytes
    logs_bloom: bytes
    gas_used: int
    blob_gas_used: int | None = None
    requests: tuple[bytes, ...] = ()
    requests_hash: bytes | None = None
    withdrawals_root: bytes | None = None
    access_list: bytes | None = None


# Header fields that BlockResult has under the same name, in header order.
RESULT_FIELDS = tuple(
    row.name for row in HEADER_FIELDS if row.name in BlockResult.__struct_fields__
)
