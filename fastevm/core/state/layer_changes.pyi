"""Compares two layers: the addresses that differ, and the changes of a single account."""

from fastevm.core.primitives.bytes_like import BytesLike
from fastevm.core.state.layer import Layer
from fastevm.core.state.values import AccountChange

def changed_addresses(before: Layer, after: Layer) -> set[bytes]: ...
def account_change(before: Layer, after: Layer, address: BytesLike) -> AccountChange | None: ...
