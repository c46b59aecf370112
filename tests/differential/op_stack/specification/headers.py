"""Headers of OP-stack blocks: their fields, their hash, extraData, and the next base fee.

Source: exec-engine, "1559 Parameters"; holocene/exec-engine, "Dynamic EIP-1559 Parameters";
jovian/exec-engine, "Minimum Base Fee"; canyon, ecotone and isthmus/exec-engine on the roots.
"""

from dataclasses import dataclass, replace
from hashlib import sha256

from .encoding import EMPTY_STRING, keccak256, rlp_encode
from .forks import Fork

NO_OMMERS = keccak256(rlp_encode([]))
EMPTY_ROOT = keccak256(bytes([EMPTY_STRING]))
NO_REQUESTS = sha256(b"").digest()
BEFORE_CANYON_DENOMINATOR = 50
HOLOCENE_BYTES, JOVIAN_BYTES = 9, 17


class InvalidHeader(Exception):
    """Raised for a header that is invalid in its fork."""


@dataclass(frozen=True)
class Header:
    """The fields of a header. Fields after the base fee are None if the fork does not have them."""

    parent_hash: bytes
    coinbase: bytes
    state_root: bytes
    transactions_root: bytes
    receipts_root: bytes
    bloom: bytes
    number: int
    gas_limit: int
    gas_used: int
    timestamp: int
    extra_data: bytes
    prev_randao: bytes
    base_fee: int
    withdrawals_root: bytes | None = None
    blob_gas_used: int | None = None
    excess_blob_gas: int | None = None
    parent_beacon_block_root: bytes | None = None
    requests_hash: bytes | None = None

    def encode(self) -> bytes:
        """Returns the RLP in Ethereum's order of fields.

        Ommers hash, difficulty and nonce are constants.
        """
        fields = [
            self.parent_hash, NO_OMMERS, self.coinbase, self.state_root, self.transactions_root,
            self.receipts_root, self.bloom, 0, self.number, self.gas_limit, self.gas_used,
            self.timestamp, self.extra_data, self.prev_randao, bytes(8), self.base_fee,
        ]  # fmt: skip
        later = (
            self.withdrawals_root, self.blob_gas_used, self.excess_blob_gas,
            self.parent_beacon_block_root, self.requests_hash,
        )  # fmt: skip
        return rlp_encode(fields + [field for field in later if field is not None])

    def hash(self) -> bytes:
        return keccak256(self.encode())


def completed(
    header: Header, fork: Fork, passer_root: bytes, footprint: int, beacon: bytes
) -> Header:
    """Returns the header with the fields that its fork adds after the base fee.

    `passer_root`: the storage root of the L2ToL1MessagePasser after the block, which is the
    withdrawals root since Isthmus. `footprint`: blobGasUsed since Jovian.
    """
    if fork >= Fork.CANYON:
        header = replace(header, withdrawals_root=EMPTY_ROOT)
    if fork >= Fork.ECOTONE:
        header = replace(
            header, blob_gas_used=0, excess_blob_gas=0, parent_beacon_block_root=beacon
        )
    if fork >= Fork.ISTHMUS:
        header = replace(header, withdrawals_root=passer_root, requests_hash=NO_REQUESTS)
    if fork >= Fork.JOVIAN:
        header = replace(header, blob_gas_used=footprint)
    return header


@dataclass(frozen=True)
class FeeRule:
    """The parameters that determine the base fee of the next block."""

    denominator: int
    elasticity: int
    least: int = 0

    def extra_data(self, fork: Fork) -> bytes:
        """Returns the rule as extra data of a header. The rule applies to the next block."""
        if fork < Fork.HOLOCENE:
            return b""
        pair = self.denominator.to_bytes(4, "big") + self.elasticity.to_bytes(4, "big")
        if fork < Fork.JOVIAN:
            return b"\0" + pair
        return b"\1" + pair + self.least.to_bytes(8, "big")


def decode_extra_data(extra_data: bytes, fork: Fork) -> FeeRule:
    """Returns the rule of a header since Holocene. Raises InvalidHeader if malformed."""
    is_jovian = fork >= Fork.JOVIAN
    if len(extra_data) != (JOVIAN_BYTES if is_jovian else HOLOCENE_BYTES):
        raise InvalidHeader("extraData of another length")
    if extra_data[0] != is_jovian:
        raise InvalidHeader("extraData of another version")
    denominator = int.from_bytes(extra_data[1:5], "big")
    elasticity = int.from_bytes(extra_data[5:9], "big")
    if not denominator or not elasticity:
        raise InvalidHeader("extraData with a zero")
    return FeeRule(denominator, elasticity, int.from_bytes(extra_data[9:], "big"))


def extra_data_for(parameters: bytes, least: int, constants: FeeRule, fork: Fork) -> bytes:
    """Returns extra data for the 8 bytes of EIP-1559 parameters in payload attributes.

    If denominator and elasticity are both zero, the chain's constants apply.
    """
    assert len(parameters) == 8
    denominator = int.from_bytes(parameters[:4], "big")
    elasticity = int.from_bytes(parameters[4:], "big")
    if not denominator and elasticity:
        raise InvalidHeader("a denominator of zero")
    if not denominator:
        denominator, elasticity = constants.denominator, constants.elasticity
    return FeeRule(denominator, elasticity, least).extra_data(fork)


def rule_after(parent: Header, parent_fork: Fork, fork: Fork, constants: FeeRule) -> FeeRule:
    """Returns the rule for the block after `parent`.

    `constants`: the chain's values since Canyon.
    """
    if parent_fork >= Fork.HOLOCENE:
        return decode_extra_data(parent.extra_data, parent_fork)
    if fork >= Fork.CANYON:
        return constants
    return replace(constants, denominator=BEFORE_CANYON_DENOMINATOR)


def next_base_fee(base_fee: int, gas_limit: int, metered: int, rule: FeeRule) -> int:
    """Returns the EIP-1559 base fee of the next block, raised to the rule's minimum.

    ``metered``: the gas that the block counts as used.
    """
    target = gas_limit // rule.elasticity
    delta = base_fee * abs(metered - target) // target // rule.denominator
    if metered > target:
        base_fee += max(1, delta)
    elif metered < target:
        base_fee -= delta
    return max(base_fee, rule.least)


def base_fee_after(parent: Header, parent_fork: Fork, fork: Fork, constants: FeeRule) -> int:
    """Returns the base fee that the block after `parent` must have."""
    metered = parent.gas_used
    if parent_fork >= Fork.JOVIAN:
        metered = max(metered, parent.blob_gas_used or 0)
    rule = rule_after(parent, parent_fork, fork, constants)
    return next_base_fee(parent.base_fee, parent.gas_limit, metered, rule)
