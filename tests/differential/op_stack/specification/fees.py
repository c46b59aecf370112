"""Computes a transaction's L1 data fee, operator fee and DA footprint."""

from .attributes import FeeParameters
from .fastlz import fastlz_length
from .forks import Fork

ZERO_BYTE_GAS = 4
BYTE_GAS = 16
# Before Regolith, the calldata gas includes a signature of 68 nonzero bytes.
SIGNATURE_BYTES = 68
MILLION = 10**6
# Slope per byte and offset of Fjord's linear estimate of a compressed size, in millionths of a
# byte.
ESTIMATE_PER_BYTE = 836_500
ESTIMATE_OFFSET = 42_585_600
LEAST_ESTIMATE = 100 * MILLION
JOVIAN_OPERATOR_FACTOR = 100
MOST = 2**256 - 1


def calldata_gas(raw: bytes) -> int:
    zeros = raw.count(0)
    return ZERO_BYTE_GAS * zeros + BYTE_GAS * (len(raw) - zeros)


def estimated_size(fastlz: int) -> int:
    """Returns the estimated compressed size in millionths of a byte (fjord/exec-engine)."""
    return max(LEAST_ESTIMATE, ESTIMATE_PER_BYTE * fastlz - ESTIMATE_OFFSET)


def bedrock_gas(raw: bytes, parameters: FeeParameters, fork: Fork) -> int:
    signature = 0 if fork >= Fork.REGOLITH else SIGNATURE_BYTES * BYTE_GAS
    return calldata_gas(raw) + signature + parameters.overhead


def l1_gas_used(raw: bytes, parameters: FeeParameters, fork: Fork) -> int:
    """Returns the value of the receipt field l1GasUsed."""
    if fork >= Fork.FJORD:
        return estimated_size(fastlz_length(raw)) * BYTE_GAS // MILLION
    if fork >= Fork.ECOTONE and not is_first_of_ecotone(parameters):
        return calldata_gas(raw)
    return bedrock_gas(raw, parameters, fork)


def is_first_of_ecotone(parameters: FeeParameters) -> bool:
    """Returns whether the contract does not have Ecotone's scalars yet.

    The condition is op-revm's. op-geth also requires that the blob base fee is zero, and also makes
    the check in Fjord. No known block depends on this difference, and random blocks avoid it.
    """
    return not parameters.base_fee_scalar and not parameters.blob_base_fee_scalar


def l1_cost(raw: bytes, parameters: FeeParameters, fork: Fork) -> int:
    """Returns the L1 data fee in wei. ``raw``: the signed transaction as in the block."""
    scaled = (
        BYTE_GAS * parameters.base_fee * parameters.base_fee_scalar
        + parameters.blob_base_fee * parameters.blob_base_fee_scalar
    )
    if fork >= Fork.FJORD:
        return fjord_cost(fastlz_length(raw), scaled)
    if fork >= Fork.ECOTONE and not is_first_of_ecotone(parameters):
        return calldata_gas(raw) * scaled // (BYTE_GAS * MILLION)
    gas = bedrock_gas(raw, parameters, fork)
    return gas * parameters.base_fee * parameters.scalar // MILLION


def fjord_cost(fastlz: int, scaled: int) -> int:
    return estimated_size(fastlz) * scaled // MILLION**2


def operator_fee(gas: int, parameters: FeeParameters, fork: Fork) -> int:
    """Returns the operator fee in wei for ``gas``, at most 2**256 - 1."""
    if fork < Fork.ISTHMUS:
        return 0
    scaled = gas * parameters.operator_fee_scalar
    if fork >= Fork.JOVIAN:
        scaled *= JOVIAN_OPERATOR_FACTOR
    else:
        scaled //= MILLION
    return min(MOST, scaled + parameters.operator_fee_constant)


def da_footprint(raw: bytes, parameters: FeeParameters, fork: Fork) -> int:
    """Returns what a transaction adds to the block's DA footprint. Returns 0 before Jovian."""
    if fork < Fork.JOVIAN:
        return 0
    return estimated_size(fastlz_length(raw)) // MILLION * parameters.footprint_scalar
