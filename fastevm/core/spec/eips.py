"""The EIPs, one entry each, with the numbers of the rules.

An entry has the opcodes that the EIP prices, the parameters that it sets, and the precompiles that
it adds. An entry without numbers stands for an EIP that only changes behaviour; the code implements
that change. Rules that apply to all of history (EIP-2681, EIP-3607, EIP-7610) are not listed by any
fork.
"""

from collections.abc import Mapping

from msgspec import Struct, field

from .blobs import BlobParameters
from .parameters import Value


class Eip(Struct, frozen=True, eq=False):
    """One EIP, as data.

    - ``opcodes``: mnemonics -> static prices in gas; the keys also define which opcodes exist
    - ``parameters``: names of ``parameters.PARAMETERS`` -> values
    - ``precompiles``: names -> addresses
    - ``contracts``: names -> addresses of system contracts

    Number 0 is the Yellow Paper or, if ``name`` is set, an upgrade of the OP Stack, an RIP or the
    constants of a chain.
    """

    number: int
    title: str
    opcodes: Mapping[str, int] = field(default_factory=dict)
    parameters: Mapping[str, Value] = field(default_factory=dict)
    precompiles: Mapping[str, int] = field(default_factory=dict)
    contracts: Mapping[str, bytes] = field(default_factory=dict)
    name: str = "Yellow Paper"

    @property
    def label(self) -> str:
        """``EIP-150``, or ``name`` if there is no number."""
        return f"EIP-{self.number}" if self.number else self.name


def _priced(gas: int, mnemonics: str) -> dict[str, int]:
    return dict.fromkeys(mnemonics.split(), gas)


def _family(gas: int, stem: str, last: int) -> dict[str, int]:
    return {f"{stem}{n}": gas for n in range(1, last + 1)}


# --- Frontier -----------------------------------------------------------------------------------

YELLOW_PAPER = Eip(
    0,
    "Frontier, as in the Yellow Paper's appendices E, G and H",
    opcodes={
        **_priced(0, "STOP RETURN SSTORE SELFDESTRUCT"),
        **_priced(1, "JUMPDEST"),
        **_priced(2, "ADDRESS ORIGIN CALLER CALLVALUE CALLDATASIZE CODESIZE GASPRICE COINBASE"),
        **_priced(2, "TIMESTAMP NUMBER PREVRANDAO GASLIMIT POP PC MSIZE GAS"),
        **_priced(3, "ADD SUB LT GT SLT SGT EQ ISZERO AND OR XOR NOT BYTE"),
        **_priced(3, "CALLDATALOAD CALLDATACOPY CODECOPY MLOAD MSTORE MSTORE8"),
        **_family(3, "PUSH", 32),
        **_family(3, "DUP", 16),
        **_family(3, "SWAP", 16),
        **_priced(5, "MUL DIV SDIV MOD SMOD SIGNEXTEND"),
        **_priced(8, "ADDMOD MULMOD JUMP"),
        **_priced(10, "JUMPI EXP"),
        **_priced(20, "BALANCE EXTCODESIZE EXTCODECOPY BLOCKHASH"),
        **_priced(30, "KECCAK256"),
        **_priced(40, "CALL CALLCODE"),
        **_priced(50, "SLOAD"),
        **{f"LOG{topics}": 375 + 375 * topics for topics in range(5)},
        **_priced(32_000, "CREATE"),
    },
    parameters={
        "sstore_set_cost": 20_000,
        "sstore_reset_cost": 5_000,
        "sstore_clear_refund": 15_000,
        "memory_word_cost": 3,
        "memory_quadratic_divisor": 512,
        "copy_word_cost": 3,
        "keccak_word_cost": 6,
        "log_byte_cost": 8,
        "log_topic_cost": 375,
        "exp_byte_cost": 10,
        "call_value_cost": 9_000,
        "call_stipend": 2_300,
        "call_new_account_cost": 25_000,
        "code_deposit_cost": 200,
        "selfdestruct_refund": 24_000,
        "refund_quotient": 2,
        "tx_cost": 21_000,
        "tx_zero_byte_cost": 4,
        "tx_nonzero_byte_cost": 68,
        "stack_limit": 1_024,
        "call_depth_limit": 1_024,
        "block_hash_window": 256,
        "ecrecover_cost": 3_000,
        "sha256_cost": 60,
        "sha256_word_cost": 12,
        "ripemd160_cost": 600,
        "ripemd160_word_cost": 120,
        "identity_cost": 15,
        "identity_word_cost": 3,
        "block_reward_gwei": 5_000_000_000,
        "max_uncles": 2,
        "max_uncle_depth": 6,
        "receipt_has_state_root": True,
        "min_gas_limit": 5_000,
        "gas_limit_divisor": 1_024,
        "max_extra_data_size": 32,
        "min_difficulty": 131_072,
        "difficulty_divisor": 2_048,
        "bomb_period": 100_000,
    },
    precompiles={"ECREC": 0x01, "SHA256": 0x02, "RIPEMD160": 0x03, "ID": 0x04},
)

# --- Homestead to Spurious Dragon ---------------------------------------------------------------

EIP_2 = Eip(
    2,
    "Homestead hard-fork changes",
    parameters={
        "tx_create_cost": 32_000,
        "signature_low_s": True,
        "code_deposit_must_be_paid": True,
        "difficulty_version": 1,
    },
)
EIP_7 = Eip(7, "DELEGATECALL", opcodes={"DELEGATECALL": 40})
EIP_779 = Eip(779, "Hardfork meta: DAO fork")
EIP_150 = Eip(
    150,
    "Gas cost changes for IO-heavy operations",
    opcodes={
        **_priced(200, "SLOAD"),
        **_priced(400, "BALANCE"),
        **_priced(700, "EXTCODESIZE EXTCODECOPY CALL CALLCODE DELEGATECALL"),
        **_priced(5_000, "SELFDESTRUCT"),
    },
    parameters={"selfdestruct_new_account_cost": 25_000, "all_but_one_64th": True},
)
EIP_155 = Eip(
    155, "Simple replay attack protection", parameters={"has_chain_id_in_signature": True}
)
EIP_160 = Eip(160, "EXP cost increase", parameters={"exp_byte_cost": 50})
EIP_161 = Eip(
    161,
    "State trie clearing (replaces EIP-158)",
    parameters={
        "clears_empty_accounts": True,
        "new_account_cost_needs_value": True,
        "created_account_nonce": 1,
    },
)
EIP_170 = Eip(170, "Contract code size limit", parameters={"max_code_size": 0x6000})

# --- Byzantium ----------------------------------------------------------------------------------

EIP_100 = Eip(
    100,
    "Difficulty adjustment to the mean block time including uncles",
    parameters={"difficulty_version": 2},
)
EIP_140 = Eip(140, "REVERT instruction", opcodes={"REVERT": 0})
EIP_196 = Eip(
    196,
    "Addition and multiplication on the curve alt_bn128",
    parameters={"bn254_add_cost": 500, "bn254_mul_cost": 40_000},
    precompiles={"BN254_ADD": 0x06, "BN254_MUL": 0x07},
)
EIP_197 = Eip(
    197,
    "Pairing check on the curve alt_bn128",
    parameters={"bn254_pairing_base_cost": 100_000, "bn254_pairing_pair_cost": 80_000},
    precompiles={"BN254_PAIRING": 0x08},
)
EIP_198 = Eip(
    198,
    "Big integer modular exponentiation",
    parameters={"modexp_version": 1},
    precompiles={"MODEXP": 0x05},
)
EIP_211 = Eip(
    211,
    "RETURNDATASIZE and RETURNDATACOPY",
    opcodes={"RETURNDATASIZE": 2, "RETURNDATACOPY": 3},
)
EIP_214 = Eip(214, "STATICCALL", opcodes={"STATICCALL": 700})
EIP_649 = Eip(
    649,
    "Metropolis difficulty bomb delay and block reward reduction",
    parameters={"bomb_delay_blocks": 3_000_000, "block_reward_gwei": 3_000_000_000},
)
EIP_658 = Eip(658, "Transaction status in receipts", parameters={"receipt_has_state_root": False})

# --- Constantinople to Muir Glacier -------------------------------------------------------------

EIP_145 = Eip(145, "Bitwise shifting instructions", opcodes={"SHL": 3, "SHR": 3, "SAR": 3})
EIP_1014 = Eip(1014, "Skinny CREATE2", opcodes={"CREATE2": 32_000})
EIP_1052 = Eip(1052, "EXTCODEHASH opcode", opcodes={"EXTCODEHASH": 400})
EIP_1234 = Eip(
    1234,
    "Constantinople difficulty bomb delay and block reward adjustment",
    parameters={"bomb_delay_blocks": 5_000_000, "block_reward_gwei": 2_000_000_000},
)
EIP_1283 = Eip(
    1283,
    "Net gas metering for SSTORE without dirty maps",
    parameters={"sstore_net_metering": True, "sstore_dirty_cost": 200},
)
EIP_152 = Eip(
    152,
    "BLAKE2 compression function F",
    parameters={"blake2f_round_cost": 1},
    precompiles={"BLAKE2F": 0x09},
)
EIP_1108 = Eip(
    1108,
    "Reduce alt_bn128 precompile gas costs",
    parameters={
        "bn254_add_cost": 150,
        "bn254_mul_cost": 6_000,
        "bn254_pairing_base_cost": 45_000,
        "bn254_pairing_pair_cost": 34_000,
    },
)
EIP_1344 = Eip(1344, "ChainID opcode", opcodes={"CHAINID": 2})
EIP_1884 = Eip(
    1884,
    "Repricing for trie-size-dependent opcodes",
    opcodes={"SLOAD": 800, "BALANCE": 700, "EXTCODEHASH": 700, "SELFBALANCE": 5},
)
EIP_2028 = Eip(2028, "Transaction data gas cost reduction", parameters={"tx_nonzero_byte_cost": 16})
EIP_2200 = Eip(
    2200,
    "Structured definitions for net gas metering",
    parameters={"sstore_net_metering": True, "sstore_dirty_cost": 800, "sstore_sentry": 2_300},
)
EIP_2384 = Eip(
    2384, "Muir Glacier difficulty bomb delay", parameters={"bomb_delay_blocks": 9_000_000}
)

# --- Berlin to Gray Glacier ---------------------------------------------------------------------

EIP_2565 = Eip(2565, "ModExp gas cost", parameters={"modexp_version": 2})
EIP_2718 = Eip(2718, "Typed transaction envelope")
EIP_2929 = Eip(
    2929,
    "Gas cost increases for state access opcodes",
    opcodes=_priced(
        100,
        "SLOAD BALANCE EXTCODESIZE EXTCODECOPY EXTCODEHASH CALL CALLCODE DELEGATECALL STATICCALL",
    ),
    parameters={
        "has_access_lists": True,
        "warm_access_cost": 100,
        "cold_account_surcharge": 2_600 - 100,
        "cold_selfdestruct_surcharge": 2_600,
        "cold_slot_surcharge": 2_100 - 100,
        "cold_sstore_surcharge": 2_100,
        "sstore_dirty_cost": 100,
        "sstore_reset_cost": 5_000 - 2_100,
    },
)
EIP_2930 = Eip(
    2930,
    "Optional access lists",
    parameters={"tx_access_address_cost": 2_400, "tx_access_slot_cost": 1_900, "max_tx_type": 1},
)
EIP_1559 = Eip(
    1559,
    "Fee market change",
    parameters={
        "has_base_fee": True,
        "elasticity_multiplier": 2,
        "base_fee_change_denominator": 8,
        "initial_base_fee": 1_000_000_000,
        "max_tx_type": 2,
    },
)
EIP_3198 = Eip(3198, "BASEFEE opcode", opcodes={"BASEFEE": 2})
EIP_3529 = Eip(
    3529,
    "Reduction in refunds",
    parameters={
        "selfdestruct_refund": 0,
        "sstore_clear_refund": 5_000 - 2_100 + 1_900,
        "refund_quotient": 5,
    },
)
EIP_3541 = Eip(
    3541,
    "Reject new contract code starting with the 0xEF byte",
    parameters={"rejects_code_starting_ef": True},
)
EIP_3554 = Eip(
    3554, "Difficulty bomb delay to December 2021", parameters={"bomb_delay_blocks": 9_700_000}
)
EIP_4345 = Eip(
    4345, "Difficulty bomb delay to June 2022", parameters={"bomb_delay_blocks": 10_700_000}
)
EIP_5133 = Eip(
    5133,
    "Difficulty bomb delay to mid-September 2022",
    parameters={"bomb_delay_blocks": 11_400_000},
)

# --- Paris to Cancun ----------------------------------------------------------------------------

EIP_3675 = Eip(
    3675,
    "Upgrade consensus to proof of stake",
    parameters={"proof_of_stake": True, "block_reward_gwei": 0, "bomb_delay_blocks": 0},
)
EIP_4399 = Eip(
    4399, "Supplant DIFFICULTY with PREVRANDAO", parameters={"difficulty_is_randomness": True}
)
EIP_3651 = Eip(3651, "Warm COINBASE", parameters={"warm_coinbase": True})
EIP_3855 = Eip(3855, "PUSH0 instruction", opcodes={"PUSH0": 2})
EIP_3860 = Eip(
    3860,
    "Limit and meter initcode",
    parameters={"max_initcode_size": 2 * 0x6000, "create_word_cost": 2},
)
EIP_4895 = Eip(
    4895, "Beacon chain push withdrawals as operations", parameters={"has_withdrawals": True}
)
EIP_1153 = Eip(1153, "Transient storage opcodes", opcodes={"TLOAD": 100, "TSTORE": 100})
EIP_4788 = Eip(
    4788,
    "Beacon block root in the EVM",
    parameters={"has_beacon_root": True, "system_call_gas": 30_000_000},
    contracts={"BEACON_ROOTS_ADDRESS": bytes.fromhex("000f3df6d732807ef1319fb7b8bb8522d0beac02")},
)
EIP_4844 = Eip(
    4844,
    "Shard blob transactions",
    opcodes={"BLOBHASH": 3},
    parameters={
        "has_blobs": True,
        "accepts_blobs": True,
        "blob_gas_per_blob": 1 << 17,
        "blob_min_base_fee": 1,
        "max_tx_type": 3,
        "kzg_point_evaluation_cost": 50_000,
        **BlobParameters(target=3, max=6, base_fee_fraction=3_338_477).as_parameters(),
    },
    precompiles={"KZG_POINT_EVALUATION": 0x0A},
)
EIP_5656 = Eip(5656, "MCOPY: memory copying instruction", opcodes={"MCOPY": 3})
EIP_6780 = Eip(
    6780,
    "SELFDESTRUCT only in the same transaction",
    parameters={"selfdestruct_only_if_created": True},
)
EIP_7516 = Eip(7516, "BLOBBASEFEE instruction", opcodes={"BLOBBASEFEE": 2})

# --- Prague -------------------------------------------------------------------------------------

EIP_2537 = Eip(
    2537,
    "Precompiles for curve operations on BLS12-381",
    parameters={
        "bls12_g1_add_cost": 375,
        "bls12_g1_mul_cost": 12_000,
        "bls12_g2_add_cost": 600,
        "bls12_g2_mul_cost": 22_500,
        "bls12_pairing_base_cost": 37_700,
        "bls12_pairing_pair_cost": 32_600,
        "bls12_map_fp_to_g1_cost": 5_500,
        "bls12_map_fp2_to_g2_cost": 23_800,
    },
    precompiles={
        "BLS12_G1ADD": 0x0B,
        "BLS12_G1MSM": 0x0C,
        "BLS12_G2ADD": 0x0D,
        "BLS12_G2MSM": 0x0E,
        "BLS12_PAIRING_CHECK": 0x0F,
        "BLS12_MAP_FP_TO_G1": 0x10,
        "BLS12_MAP_FP2_TO_G2": 0x11,
    },
)
EIP_2935 = Eip(
    2935,
    "Serve historical block hashes from state",
    parameters={"has_history_contract": True},
    contracts={
        "HISTORY_STORAGE_ADDRESS": bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935")
    },
)
EIP_6110 = Eip(6110, "Supply validator deposits on chain", parameters={"collects_requests": True})
EIP_7002 = Eip(
    7002,
    "Execution layer triggerable withdrawals",
    contracts={
        "WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS": bytes.fromhex(
            "00000961ef480eb55e80d19ad83579a64c007002"
        )
    },
)
EIP_7251 = Eip(
    7251,
    "Increase the MAX_EFFECTIVE_BALANCE",
    contracts={
        "CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS": bytes.fromhex(
            "0000bbddc7ce488642fb579f8b00f3a590007251"
        )
    },
)
EIP_7623 = Eip(
    7623,
    "Increase calldata cost",
    parameters={"tx_floor_token_cost": 10, "tokens_per_nonzero_byte": 4},
)
EIP_7685 = Eip(7685, "General purpose execution layer requests", parameters={"has_requests": True})
EIP_7691 = Eip(
    7691,
    "Blob throughput increase",
    parameters=BlobParameters(target=6, max=9, base_fee_fraction=5_007_716).as_parameters(),
)
EIP_7702 = Eip(
    7702,
    "Set code for EOAs",
    parameters={
        "has_delegations": True,
        "authorization_cost": 25_000,
        "authorization_refund": 25_000 - 12_500,
        "max_tx_type": 4,
    },
)

# --- Osaka and the blob parameter forks ---------------------------------------------------------

EIP_7594 = Eip(7594, "PeerDAS: peer data availability sampling", parameters={"blob_max_per_tx": 6})
EIP_7823 = Eip(7823, "Set upper bounds for MODEXP", parameters={"modexp_max_length": 1_024})
EIP_7825 = Eip(7825, "Transaction gas limit cap", parameters={"tx_gas_cap": 1 << 24})
EIP_7883 = Eip(7883, "ModExp gas cost increase", parameters={"modexp_version": 3})
EIP_7892 = Eip(7892, "Blob parameter only hardforks")
EIP_7910 = Eip(7910, "eth_config JSON-RPC method")
EIP_7918 = Eip(
    7918, "Blob base fee bounded by execution cost", parameters={"blob_reserve_cost": 1 << 13}
)
EIP_7934 = Eip(
    7934,
    "RLP execution block size limit",
    parameters={"max_block_rlp_size": 10_485_760 - 2_097_152},
)
EIP_7939 = Eip(7939, "Count leading zeros (CLZ) opcode", opcodes={"CLZ": 5})
EIP_7951 = Eip(
    7951,
    "Precompile for the curve secp256r1",
    parameters={"p256_verify_cost": 6_900},
    precompiles={"P256VERIFY": 0x100},
)
EIP_8134 = Eip(
    8134,
    "Hardfork meta: BPO1",
    parameters=BlobParameters(target=10, max=15, base_fee_fraction=8_346_193).as_parameters(),
)
EIP_8135 = Eip(
    8135,
    "Hardfork meta: BPO2",
    parameters=BlobParameters(target=14, max=21, base_fee_fraction=11_684_671).as_parameters(),
)
