"""The L1 attributes: calldata of a block's first deposit, and storage layout of their contract.

Source: deposits, "L1 Attributes Deposited Transaction"; l1-attributes of ecotone, isthmus and
jovian; exec-engine, "L1-Cost fees".
"""

from collections.abc import Callable
from dataclasses import dataclass

from .encoding import DecodingError, word
from .forks import Fork

L1_BLOCK = bytes.fromhex("4200000000000000000000000000000000000015")
DEPOSITOR = bytes.fromhex("deaddeaddeaddeaddeaddeaddeaddeaddead0001")

BASE_FEE_SLOT = 1
SCALARS_SLOT = 3
OVERHEAD_SLOT = 5
SCALAR_SLOT = 6
BLOB_BASE_FEE_SLOT = 7
OPERATOR_FEE_SLOT = 8
# Zero in calldata stands for this footprint scalar (specification of Jovian).
DEFAULT_FOOTPRINT_SCALAR = 400

# Name and size in bytes of each calldata field after the selector.
BEDROCK_LAYOUT = tuple(
    (name, 32)
    for name in (
        "number", "timestamp", "base_fee", "hash", "sequence_number", "batcher_hash", "overhead",
        "scalar",
    )
)  # fmt: skip
ECOTONE_LAYOUT = (
    ("base_fee_scalar", 4),
    ("blob_base_fee_scalar", 4),
    ("sequence_number", 8),
    ("timestamp", 8),
    ("number", 8),
    ("base_fee", 32),
    ("blob_base_fee", 32),
    ("hash", 32),
    ("batcher_hash", 32),
)
ISTHMUS_LAYOUT = (*ECOTONE_LAYOUT, ("operator_fee_scalar", 4), ("operator_fee_constant", 8))
JOVIAN_LAYOUT = (*ISTHMUS_LAYOUT, ("footprint_scalar", 2))
FORMS = {
    bytes.fromhex("015d8eb9"): BEDROCK_LAYOUT,
    bytes.fromhex("440a5e20"): ECOTONE_LAYOUT,
    bytes.fromhex("098999be"): ISTHMUS_LAYOUT,
    bytes.fromhex("3db6be2b"): JOVIAN_LAYOUT,
}


@dataclass(frozen=True)
class Attributes:
    """The L1 attributes of an L2 block. Fields that the calldata format lacks are zero."""

    number: int = 0
    timestamp: int = 0
    base_fee: int = 0
    hash: int = 0
    sequence_number: int = 0
    batcher_hash: int = 0
    overhead: int = 0
    scalar: int = 0
    base_fee_scalar: int = 0
    blob_base_fee_scalar: int = 0
    blob_base_fee: int = 0
    operator_fee_scalar: int = 0
    operator_fee_constant: int = 0
    footprint_scalar: int = 0

    def calldata(self, fork: Fork) -> bytes:
        """Returns the calldata of `setL1BlockValues...` in the format of a fork."""
        selector = selector_of(fork)
        fields = (getattr(self, name).to_bytes(size, "big") for name, size in FORMS[selector])
        return selector + b"".join(fields)

    @staticmethod
    def decode(calldata: bytes) -> "Attributes":
        """Decodes calldata of any format. Raises DecodingError if selector or length is unknown."""
        layout = FORMS.get(calldata[:4])
        if layout is None or len(calldata) != 4 + sum(size for _, size in layout):
            raise DecodingError("no L1 attributes")
        fields, at = {}, 4
        for name, size in layout:
            fields[name] = int.from_bytes(calldata[at : at + size], "big")
            at += size
        return Attributes(**fields)


def selector_of(fork: Fork) -> bytes:
    """Returns the selector of a fork's calldata.

    The fork's first block still has the previous selector.
    """
    bedrock, ecotone, isthmus, jovian = FORMS
    if fork >= Fork.JOVIAN:
        return jovian
    if fork >= Fork.ISTHMUS:
        return isthmus
    return ecotone if fork >= Fork.ECOTONE else bedrock


@dataclass(frozen=True)
class FeeParameters:
    """The fee parameters that the L1 attributes contract stores after the deposits of a block."""

    base_fee: int
    overhead: int
    scalar: int
    base_fee_scalar: int
    blob_base_fee_scalar: int
    blob_base_fee: int
    operator_fee_scalar: int
    operator_fee_constant: int
    footprint_scalar: int


def parameters_from_storage(read: Callable[[int], int]) -> FeeParameters:
    """Reads the parameters from the contract's slots (ecotone/l1-attributes, isthmus/exec-engine).

    Slot 3 contains Ecotone's two scalars above the sequence number. Slot 8 contains the operator
    fee constant in its lowest bytes, above it the operator fee scalar, then the footprint scalar.
    """
    scalars, operator = word(read(SCALARS_SLOT)), word(read(OPERATOR_FEE_SLOT))
    return FeeParameters(
        base_fee=read(BASE_FEE_SLOT),
        overhead=read(OVERHEAD_SLOT),
        scalar=read(SCALAR_SLOT),
        base_fee_scalar=int.from_bytes(scalars[16:20], "big"),
        blob_base_fee_scalar=int.from_bytes(scalars[20:24], "big"),
        blob_base_fee=read(BLOB_BASE_FEE_SLOT),
        operator_fee_scalar=int.from_bytes(operator[20:24], "big"),
        operator_fee_constant=int.from_bytes(operator[24:32], "big"),
        footprint_scalar=int.from_bytes(operator[18:20], "big"),
    )


def parameters_from_attributes(attributes: Attributes) -> FeeParameters:
    """Returns the fee parameters in the attributes of a block's first deposit."""
    names = FeeParameters.__annotations__
    return FeeParameters(**{name: getattr(attributes, name) for name in names})
