"""The OP Stack upgrades, one entry each, with the rules that are not EIPs of Ethereum.

Source: the OP Stack specification, the page of each upgrade and the chapters on deposits, L1
attributes, the execution engine and precompiles.
"""

from .eips import Eip

ELASTICITY_MULTIPLIER = 6
BASE_FEE_CHANGE_DENOMINATOR = 50
BASE_FEE_CHANGE_DENOMINATOR_CANYON = 250


def fee_constants(elasticity: int, denominator: int) -> Eip:
    """Returns an entry with a chain's EIP-1559 constants, which apply until Holocene."""
    return Eip(
        0,
        "Constants of the base fee",
        parameters={
            "elasticity_multiplier": elasticity,
            "base_fee_change_denominator": denominator,
        },
        name=f"elasticity {elasticity}, denominator {denominator}",
    )


BEDROCK = Eip(
    0,
    "Deposits, the L1 data fee, fee vaults",
    parameters={
        "has_deposits": True,
        "has_fee_vaults": True,
        "has_free_gas_limit": True,
        "l1_fee_version": 1,
        "elasticity_multiplier": ELASTICITY_MULTIPLIER,
        "base_fee_change_denominator": BASE_FEE_CHANGE_DENOMINATOR,
    },
    name="Bedrock",
)
REGOLITH = Eip(
    0,
    "Deposits report the gas that they use",
    parameters={"deposits_report_gas": True, "l1_fee_version": 2},
    name="Regolith",
)
CANYON = Eip(
    0,
    "Deposit receipts commit to the nonce",
    parameters={
        "deposit_receipt_version": 1,
        "base_fee_change_denominator": BASE_FEE_CHANGE_DENOMINATOR_CANYON,
    },
    name="Canyon",
)
DELTA = Eip(0, "Span batches", name="Delta")
ECOTONE = Eip(
    0,
    "The L1 data fee follows blob prices; no blob transactions",
    parameters={
        "l1_fee_version": 3,
        "accepts_blobs": False,
        "blob_target": 0,
        "blob_max": 0,
        "max_tx_type": 2,
    },
    name="Ecotone",
)
RIP_7212 = Eip(
    0,
    "Precompile for the curve secp256r1",
    parameters={"p256_verify_cost": 3_450},
    precompiles={"P256VERIFY": 0x100},
    name="RIP-7212",
)
FJORD = Eip(
    0, "The L1 data fee estimates compression", parameters={"l1_fee_version": 4}, name="Fjord"
)
GRANITE = Eip(
    0,
    "Limit of the pairing precompile",
    parameters={"bn254_pairing_max_input": 112_687},
    name="Granite",
)
HOLOCENE = Eip(
    0,
    "Constants of the base fee in the extra data",
    parameters={"fee_parameters_version": 1},
    name="Holocene",
)
ISTHMUS = Eip(
    0,
    "Operator fee, withdrawals root, limits of the BLS precompiles",
    parameters={
        "operator_fee_version": 1,
        "commits_to_withdrawals": True,
        "bls12_g1_msm_max_input": 513_760,
        "bls12_g2_msm_max_input": 488_448,
        "bls12_pairing_max_input": 235_008,
    },
    name="Isthmus",
)
JOVIAN = Eip(
    0,
    "Minimum base fee, DA footprint, smaller limits of precompiles",
    parameters={
        "operator_fee_version": 2,
        "fee_parameters_version": 2,
        "has_da_footprint": True,
        "bn254_pairing_max_input": 81_984,
        "bls12_g1_msm_max_input": 288_960,
        "bls12_g2_msm_max_input": 278_784,
        "bls12_pairing_max_input": 156_672,
    },
    name="Jovian",
)
KARST = Eip(
    0,
    "Osaka's opcodes and prices, smaller limit of the pairing precompile",
    parameters={"bn254_pairing_max_input": 57_600},
    name="Karst",
)
LAGOON = Eip(
    0, "Gas refunds defined by the sequencer", parameters={"has_post_exec": True}, name="Lagoon"
)
AZUL = Eip(0, "Osaka's opcodes and prices", name="Azul")
BERYL = Eip(
    0,
    "Native tokens (B20), their factory, policies and feature switches",
    parameters={"native_contracts": 1, "b20_version": 1},
    name="Beryl",
)
COBALT = Eip(
    0,
    "Seizure, composite policies, scheduled multipliers of native tokens",
    parameters={"b20_version": 2},
    name="Cobalt",
)
DENIM = Eip(
    0,
    "Blocks every 200 ms, inverted policies of native tokens",
    parameters={"b20_version": 3, "has_base_time": True},
    name="Denim",
)


def activation_admin(address: bytes) -> Eip:
    """Returns an entry with the address (20 bytes) that may activate features of a Base chain."""
    return Eip(
        0,
        "Admin of Base's ActivationRegistry",
        parameters={"activation_admin": int.from_bytes(address, "big")},
        name=f"activation admin 0x{address.hex()}",
    )
