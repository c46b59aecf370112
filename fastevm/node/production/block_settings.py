"""A developer's settings for the next blocks. They override the rules and the source."""

from __future__ import annotations

from typing import Any, Final

from fastevm.core.primitives.replace import replace
from fastevm.node.production.attributes import BlockAttributes

MAX_GAS_LIMIT: Final = 2**63 - 1  # gas is a signed number of 64 bits
MAX_BASE_FEE: Final = 2**128 - 1  # wei; the cost of a block still fits into 256 bits


class BlockSettings:
    """Settings for all later blocks, and for the children of one block.

    ``coinbase`` (20 bytes) and ``gas_limit`` override the block's source and rules, unless they are
    None. ``min_gas_price``: wei that a transaction must offer. ``of_children``: attributes of the
    children of the block with the hash ``parent``. Do not call the methods while a block begins.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Removes all settings."""
        self.coinbase: bytes | None = None
        self.gas_limit: int | None = None
        self.min_gas_price = 0
        self.parent: bytes | None = None
        self.of_children: dict[str, Any] = {}

    def copy(self) -> BlockSettings:
        """Returns a copy that later changes do not affect."""
        same = BlockSettings()
        same.restore(self)
        return same

    def restore(self, kept: BlockSettings) -> None:
        """Replaces all settings with those of ``kept``."""
        self.coinbase, self.gas_limit = kept.coinbase, kept.gas_limit
        self.min_gas_price = kept.min_gas_price
        self.parent, self.of_children = kept.parent, dict(kept.of_children)

    def set_child(self, parent: bytes, **decided: Any) -> None:
        """Sets attributes of the children of the block with the hash ``parent``.

        ``base_fee`` in wei, ``prev_randao`` of 32 bytes.
        """
        if parent != self.parent:
            self.parent, self.of_children = parent, {}
        self.of_children |= decided

    def base_fee_after(self, parent: bytes) -> int | None:
        """Returns the base fee in wei that was set for the children of a block, or None."""
        found: int | None = self._of_child(parent).get("base_fee")
        return found

    def applied(self, attributes: BlockAttributes, parent: bytes) -> BlockAttributes:
        """Returns the attributes of a child of ``parent`` with these settings applied."""
        decided = dict(self._of_child(parent))
        if self.coinbase is not None:
            decided["coinbase"] = self.coinbase
        if self.gas_limit is not None:
            decided["gas_limit"] = self.gas_limit
        return replace(attributes, **decided) if decided else attributes

    def _of_child(self, parent: bytes) -> dict[str, Any]:
        return self.of_children if parent == self.parent else {}
