"""The L1 attributes. On an OP Stack chain, the first deposit of each block contains them.

Source: the OP Stack specification, L1 attributes deposited transaction, by upgrade.
"""

from __future__ import annotations

from msgspec import Struct

from fastevm.core.execution.op_stack.predeploys import L1_BLOCK
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.spec.schedule import ForkSchedule

DEPOSITOR = bytes.fromhex("deaddeaddeaddeaddeaddeaddeaddeaddead0001")

BEDROCK_SELECTOR = bytes.fromhex("015d8eb9")
ECOTONE_SELECTOR = bytes.fromhex("440a5e20")
ISTHMUS_SELECTOR = bytes.fromhex("098999be")
JOVIAN_SELECTOR = bytes.fromhex("3db6be2b")

USER_DOMAIN, ATTRIBUTES_DOMAIN = 0, 1  # domains of source hashes

_SIZES = {
    BEDROCK_SELECTOR: 4 + 8 * 32,
    ECOTONE_SELECTOR: 164,
    ISTHMUS_SELECTOR: 176,
    JOVIAN_SELECTOR: 178,
}


class L1Attributes(Struct, frozen=True, kw_only=True):
    """The L1 origin of an L2 block, and the parameters of L2 fees.

    - ``base_fee``, ``blob_base_fee``: the fees of the L1 origin, in wei
    - ``base_fee_scalar``, ``blob_base_fee_scalar`` and ``operator_fee_scalar``: millionths
    - ``fee_overhead`` (gas) and ``fee_scalar`` (millionths): exist until Ecotone
    - ``operator_fee_constant``: wei
    - ``da_footprint_gas_scalar``: gas per byte
    - ``sequence_number``: number of earlier L2 blocks with the same L1 origin
    """

    number: int = 0
    timestamp: int = 0
    base_fee: int = 0
    blob_base_fee: int = 0
    hash: bytes = bytes(32)
    sequence_number: int = 0
    batcher_hash: bytes = bytes(32)
    fee_overhead: int = 0
    fee_scalar: int = 0
    base_fee_scalar: int = 0
    blob_base_fee_scalar: int = 0
    operator_fee_scalar: int = 0
    operator_fee_constant: int = 0
    da_footprint_gas_scalar: int = 0

    def calldata(self, selector: bytes) -> bytes:
        """Returns the attributes as call data in the format of ``selector`` (4 bytes)."""
        if selector == BEDROCK_SELECTOR:
            words = (
                self.number,
                self.timestamp,
                self.base_fee,
                self.hash,
                self.sequence_number,
                self.batcher_hash,
                self.fee_overhead,
                self.fee_scalar,
            )
            return selector + b"".join(
                word if isinstance(word, bytes) else word.to_bytes(32, "big") for word in words
            )
        parts = [
            selector,
            self.base_fee_scalar.to_bytes(4, "big"),
            self.blob_base_fee_scalar.to_bytes(4, "big"),
            self.sequence_number.to_bytes(8, "big"),
            self.timestamp.to_bytes(8, "big"),
            self.number.to_bytes(8, "big"),
            self.base_fee.to_bytes(32, "big"),
            self.blob_base_fee.to_bytes(32, "big"),
            self.hash,
            self.batcher_hash,
        ]
        if selector != ECOTONE_SELECTOR:
            parts += [
                self.operator_fee_scalar.to_bytes(4, "big"),
                self.operator_fee_constant.to_bytes(8, "big"),
            ]
        if selector == JOVIAN_SELECTOR:
            parts.append(self.da_footprint_gas_scalar.to_bytes(2, "big"))
        return b"".join(parts)


def read_l1_attributes(data: bytes) -> L1Attributes:
    """Decodes the call data of an L1 attributes transaction.

    Raises ValueError for an unknown selector, or for a length that does not fit the selector.
    """
    selector = data[:4]
    size = _SIZES.get(selector)
    if size is None:
        raise ValueError(f"L1 attributes: unknown selector 0x{selector.hex()}")
    if len(data) != size:
        raise ValueError(f"L1 attributes: expected {size} bytes, found {len(data)}")
    if selector == BEDROCK_SELECTOR:
        return _read_words([data[at : at + 32] for at in range(4, size, 32)])
    return L1Attributes(
        base_fee_scalar=_integer(data[4:8]),
        blob_base_fee_scalar=_integer(data[8:12]),
        sequence_number=_integer(data[12:20]),
        timestamp=_integer(data[20:28]),
        number=_integer(data[28:36]),
        base_fee=_integer(data[36:68]),
        blob_base_fee=_integer(data[68:100]),
        hash=data[100:132],
        batcher_hash=data[132:164],
        operator_fee_scalar=_integer(data[164:168]),
        operator_fee_constant=_integer(data[168:176]),
        da_footprint_gas_scalar=_integer(data[176:178]),
    )


def _read_words(words: list[bytes]) -> L1Attributes:
    return L1Attributes(
        number=_integer(words[0]),
        timestamp=_integer(words[1]),
        base_fee=_integer(words[2]),
        hash=words[3],
        sequence_number=_integer(words[4]),
        batcher_hash=words[5],
        fee_overhead=_integer(words[6]),
        fee_scalar=_integer(words[7]),
    )


def _integer(data: bytes) -> int:
    return int.from_bytes(data, "big")


def attributes_of(transactions: tuple[Transaction, ...]) -> L1Attributes | None:
    """Returns the L1 attributes of a block, or None if its first transaction does not set them."""
    if not transactions:
        return None
    first = transactions[0]
    if first.source_hash is None or first.to != L1_BLOCK or first.sender != DEPOSITOR:
        return None
    try:
        return read_l1_attributes(first.data)
    except ValueError:
        return None


def attributes_source_hash(attributes: L1Attributes) -> bytes:
    """Returns the source hash (32 bytes) of the L1 attributes transaction: domain 1."""
    return source_hash(ATTRIBUTES_DOMAIN, attributes.hash, attributes.sequence_number)


def source_hash(domain: int, l1_hash: bytes, index: int) -> bytes:
    """Returns the source hash (32 bytes) of a deposit whose L1 origin is ``l1_hash``.

    ``index``: log index of the user deposit (domain 0), or sequence number of the attributes
    (domain 1).
    """
    return keccak256(domain.to_bytes(32, "big") + keccak256(l1_hash + index.to_bytes(32, "big")))


def attributes_selector(schedule: ForkSchedule) -> bytes:
    """Returns the selector (4 bytes) of L1 attributes under ``schedule``.

    For the first block of a fork, pass the schedule of the previous fork, because that block still
    uses the old format.
    """
    rules = schedule.parameters
    if rules["has_da_footprint"]:
        return JOVIAN_SELECTOR
    if rules["operator_fee_version"]:
        return ISTHMUS_SELECTOR
    return ECOTONE_SELECTOR if rules["has_blobs"] else BEDROCK_SELECTOR
