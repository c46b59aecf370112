"""Members that Arbitrum's nodes add to answers: numbers and prices of L1."""

from typing import Any

from fastevm.core.execution.arbitrum.header import HeaderInfo, is_arbitrum
from fastevm.core.execution.arbitrum.l1_fee import PRICE_SLOT
from fastevm.core.execution.types import Header, Receipt
from fastevm.core.native.arbitrum.storage import STATE_ADDRESS
from fastevm.core.primitives.hex import quantity
from fastevm.core.primitives.keccak import keccak256


def selector(signature: str) -> bytes:
    """Returns the first four bytes of a signature's hash."""
    return keccak256(signature.encode())[:4]


def l1_number(header: Header) -> int:
    """Returns the L1 block number in a header of Arbitrum."""
    return HeaderInfo.of(header.mix_hash).l1_number


def l1_price(layer: Any) -> int:
    """Returns the L1 price per unit of data in wei, from the storage of ArbOS."""
    return int(layer.storage(STATE_ADDRESS, PRICE_SLOT))


def receipt_members(header: Header, receipt: Receipt) -> list[bytes]:
    """Returns JSON text of the additional members of Arbitrum's receipts. Empty on other chains."""
    if not is_arbitrum(header):
        return []
    members = {"gasUsedForL1": receipt.l1_gas_used, "l1BlockNumber": l1_number(header)}
    return [f'"{name}":"{quantity(value)}"'.encode() for name, value in members.items()]
