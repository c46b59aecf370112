"""Every dynamic price, limit and flag of the rules: name, meaning and unit.

The names are those of the C struct's fields in ``schedule.pxd`` (and in capitals of
``constants.pxd``). The values are in ``eips``, under their EIP. A parameter that no EIP of a fork
sets has its ``absent`` value.
"""

from collections.abc import Mapping

from msgspec import Struct

Value = int | bool


class Parameter(Struct, frozen=True):
    """One number or flag of the rules.

    ``constant``: whether the value is equal in all forks. Such values are C constants; the others
    are fields of the packed schedule.
    """

    name: str
    meaning: str
    unit: str
    absent: Value = 0
    constant: bool = False


def _group(unit: str, rows: Mapping[str, str], *, constant: bool = False) -> tuple[Parameter, ...]:
    absent = False if unit == "flag" else 0
    return tuple(Parameter(name, meaning, unit, absent, constant) for name, meaning in rows.items())


_GAS = _group(
    "gas",
    {
        "sstore_set_cost": "writing a nonzero value into a clean zero slot",
        "sstore_reset_cost": "any other first change of a slot in the transaction",
        "sstore_dirty_cost": "writing the same value, or to a slot changed before",
        "sstore_clear_refund": "refund when a nonzero slot becomes zero",
        "sstore_sentry": "SSTORE fails unless more than this gas is left; 0 = no rule",
        "cold_account_surcharge": "first access to an account, on top of the opcode's price",
        "cold_slot_surcharge": "SLOAD of a slot not accessed before, on top of the opcode's price",
        "cold_sstore_surcharge": "SSTORE to a slot not accessed before, plus the transition's cost",
        "cold_selfdestruct_surcharge": "SELFDESTRUCT to an account not accessed before",
        "warm_access_cost": "access to a warm account, on top of the opcode's price",
        "call_value_cost": "a call that transfers value",
        "call_stipend": "free gas of the callee if a call transfers value",
        "call_new_account_cost": "a call that creates an account",
        "selfdestruct_new_account_cost": "SELFDESTRUCT that creates its beneficiary",
        "selfdestruct_refund": "refund for each contract destroyed",
        "bn254_add_cost": "precompile BN254_ADD",
        "bn254_mul_cost": "precompile BN254_MUL",
        "bn254_pairing_base_cost": "precompile BN254_PAIRING, without its pairs",
        "p256_verify_cost": "precompile P256VERIFY",
        "tx_cost": "every transaction",
        "tx_create_cost": "a contract creation, on top of tx_cost",
        "tx_access_address_cost": "each address of an access list",
        "tx_access_slot_cost": "each storage key of an access list",
        "tx_gas_cap": "highest gas limit of one transaction; 0 = none",
        "authorization_cost": "each authorization tuple, at the price of an empty account",
        "authorization_refund": "refund for an authorization of an account that exists",
        "blob_gas_per_blob": "blob gas that one blob uses",
        "blob_reserve_cost": "execution gas whose price bounds the blob fee; 0 = no rule",
        "tx_recipient_cost": "a transaction to another account",
        "tx_value_cost": "a transaction that transfers value to another account",
        "tx_total_gas_cap": "highest gas limit of a transaction, including state gas; 0 = none",
        "tx_floor_address_cost": "each address of an access list, in the calldata floor",
        "tx_floor_slot_cost": "each storage key of an access list, in the calldata floor",
        "account_write_cost": "the first write of an authorization to its account",
        "system_call_state_gas": "state gas of a system call, in addition to its gas",
        "block_access_item_gas": "gas limit required for each item of the block's access list",
    },
)

_GAS_EACH = (
    *_group(
        "gas per byte",
        {
            "code_deposit_cost": "storing the code of a new contract",
            "exp_byte_cost": "each byte of EXP's exponent",
            "tx_zero_byte_cost": "each zero byte of a transaction's data",
            "tx_nonzero_byte_cost": "each nonzero byte of a transaction's data",
            "tx_floor_byte_cost": "each byte of data, in the calldata floor; 0 = no rule",
            "state_byte_cost": "state gas per byte of new state; 0 = by the block's gas limit",
        },
    ),
    *_group(
        "gas per word",
        {
            "create_word_cost": "each 32 bytes of init code",
            "code_word_cost": "each 32 bytes of a new contract's code",
        },
    ),
    *_group("gas per pair", {"bn254_pairing_pair_cost": "precompile BN254_PAIRING, each pair"}),
    *_group(
        "gas per token",
        {"tx_floor_token_cost": "calldata floor price; 0 = no floor"},
    ),
)

_LIMITS = (
    *_group(
        "bytes",
        {
            "max_code_size": "largest code of a contract; 0 = no limit",
            "max_initcode_size": "largest init code; 0 = no limit",
            "modexp_max_length": "largest operand of MODEXP; 0 = no limit",
            "bn254_pairing_max_input": "largest input of BN254_PAIRING; 0 = no limit",
            "bls12_g1_msm_max_input": "largest input of BLS12_G1MSM; 0 = no limit",
            "bls12_g2_msm_max_input": "largest input of BLS12_G2MSM; 0 = no limit",
            "bls12_pairing_max_input": "largest input of BLS12_PAIRING_CHECK; 0 = no limit",
            "max_block_rlp_size": "largest encoded block; 0 = no limit",
            "account_state_bytes": "bytes of state that a new account pays for",
            "slot_state_bytes": "bytes of state that a new storage slot pays for",
            "delegation_state_bytes": "bytes of state that a new delegation pays for",
        },
    ),
    *_group(
        "number",
        {
            "created_account_nonce": "initial nonce of a contract",
            "refund_quotient": "the refund is at most the gas used divided by this",
            "max_tx_type": "highest transaction type accepted",
            "elasticity_multiplier": "ratio of a block's gas limit to its gas target",
            "base_fee_change_denominator": "the base fee changes by at most 1 / this",
            "blob_target": "blobs per block at which the blob fee does not change",
            "blob_max": "maximum number of blobs in a block",
            "blob_max_per_tx": "maximum number of blobs in a transaction; 0 = the block's maximum",
            "blob_base_fee_fraction": "excess blob gas that multiplies the blob fee by e",
        },
    ),
    *_group(
        "version",
        {
            "modexp_version": "price formula of MODEXP: 0 none, 1 Byzantium, 2 Berlin, 3 Osaka",
            "difficulty_version": "difficulty formula: 0 Frontier, 1 Homestead, 2 Byzantium",
            "l1_fee_version": "L1 data fee: 0 none, 1 Bedrock, 2 Regolith, 3 Ecotone, 4 Fjord",
            "operator_fee_version": "operator fee: 0 none, 1 Isthmus, 2 Jovian",
            "fee_parameters_version": "in the extra data: 0 none, 1 Holocene, 2 Jovian",
            "deposit_receipt_version": "nonce in receipts of deposits: 0 none, 1 Canyon",
            "state_gas_version": "state gas: 0 none, 1 devnet of April 2026, 2 Amsterdam",
            "native_contracts": "contracts that clients implement: 0 none, 1 Base, 2 Arbitrum",
            "arbos_version": "version of ArbOS: 0 on other chains than Arbitrum's",
            "b20_version": "native tokens of Base: 0 none, 1 Beryl, 2 Cobalt, 3 Denim",
        },
    ),
    *_group(
        "address",
        {"activation_admin": "admin of Base's ActivationRegistry unless its storage names one"},
    ),
    *_group("blocks", {"bomb_delay_blocks": "delay of the difficulty bomb"}),
    *_group("gwei", {"block_reward_gwei": "reward of the block's miner"}),
    *_group(
        "wei",
        {
            "initial_base_fee": "base fee of the first block that has one",
            "blob_min_base_fee": "minimum blob base fee",
        },
    ),
)

_FLAGS = _group(
    "flag",
    {
        "sstore_net_metering": "the price of SSTORE also depends on the slot's original value",
        "has_access_lists": "warm and cold accounts and slots have different prices",
        "all_but_one_64th": "a caller keeps 1/64 of its gas",
        "new_account_cost_needs_value": "only value sent to a dead account pays for its creation",
        "code_deposit_must_be_paid": "a creation that cannot pay for its code fails",
        "rejects_code_starting_ef": "rejects new contract code that starts with 0xef",
        "selfdestruct_only_if_created": "SELFDESTRUCT only destroys contracts of the transaction",
        "clears_empty_accounts": "touched empty accounts are deleted, and calls do not create them",
        "has_delegations": "accounts may delegate to code (EIP-7702)",
        "difficulty_is_randomness": "opcode 0x44 returns the beacon chain's randomness",
        "signature_low_s": "signatures with a high s are invalid",
        "has_chain_id_in_signature": "a signature may include the chain id",
        "warm_coinbase": "the block's coinbase is warm at the start of a transaction",
        "has_base_fee": "blocks have a base fee, which is burned",
        "has_blobs": "headers have blob gas fields, and BLOBHASH and BLOBBASEFEE exist",
        "accepts_blobs": "blob transactions are valid, and blob gas has a fee",
        "proof_of_stake": "no block reward, no uncles, difficulty 0",
        "receipt_has_state_root": "receipts hold a state root instead of a status",
        "has_withdrawals": "blocks credit withdrawals of validators",
        "has_beacon_root": "the parent beacon block root is stored at the start of a block",
        "has_history_contract": "the parent's hash is stored at the start of a block",
        "has_requests": "headers commit to requests to the consensus layer",
        "collects_requests": "blocks end with the requests of the system contracts",
        "has_deposits": "blocks begin with deposit transactions from L1 (OP stack)",
        "deposits_report_gas": "receipts of deposits and the block count the gas that deposits use",
        "has_fee_vaults": "base fee, L1 data fee and operator fee go to vaults (OP stack)",
        "has_free_gas_limit": "a block's gas limit does not depend on its parent's",
        "has_da_footprint": "blob gas used in a header is the DA footprint",
        "has_post_exec": "a block may end with gas refunds by its sequencer (OP stack)",
        "has_base_time": "blocks every 200 ms; their second transaction sets the milliseconds",
        "commits_to_withdrawals": "the withdrawals root is L2ToL1MessagePasser's storage root",
        "has_transfer_logs": "ether transfers emit a log",
        "has_burn_logs": "ether burned by SELFDESTRUCT emits a log",
        "counts_gas_before_refunds": "the gas used of a block does not subtract refunds",
        "has_slot_number": "headers have the beacon chain's slot number",
        "has_block_access_list": "headers commit to the accounts and slots that the block uses",
        "creates_over_storage": "storage alone does not prevent contract creation",
        "selfdestruct_keeps_balance": "a destroyed contract keeps the ether that it sent to itself",
        "has_builder_requests": "blocks also end with the requests of the builder contracts",
    },
)

_CONSTANTS = (
    *_group(
        "gas",
        {
            "memory_word_cost": "each word of memory, the linear part",
            "copy_word_cost": "each word copied",
            "keccak_word_cost": "each word hashed by KECCAK256 and CREATE2",
            "log_byte_cost": "each byte of a log's data",
            "log_topic_cost": "each topic of a log",
            "ecrecover_cost": "precompile ECREC",
            "sha256_cost": "precompile SHA256",
            "sha256_word_cost": "precompile SHA256, each word",
            "ripemd160_cost": "precompile RIPEMD160",
            "ripemd160_word_cost": "precompile RIPEMD160, each word",
            "identity_cost": "precompile ID",
            "identity_word_cost": "precompile ID, each word",
            "blake2f_round_cost": "precompile BLAKE2F, each round",
            "kzg_point_evaluation_cost": "precompile KZG_POINT_EVALUATION",
            "bls12_g1_add_cost": "precompile BLS12_G1ADD",
            "bls12_g1_mul_cost": "precompile BLS12_G1MSM, one multiplication before the discount",
            "bls12_g2_add_cost": "precompile BLS12_G2ADD",
            "bls12_g2_mul_cost": "precompile BLS12_G2MSM, one multiplication before the discount",
            "bls12_pairing_base_cost": "precompile BLS12_PAIRING_CHECK, without its pairs",
            "bls12_pairing_pair_cost": "precompile BLS12_PAIRING_CHECK, each pair",
            "bls12_map_fp_to_g1_cost": "precompile BLS12_MAP_FP_TO_G1",
            "bls12_map_fp2_to_g2_cost": "precompile BLS12_MAP_FP2_TO_G2",
            "min_gas_limit": "minimum gas limit of a block",
            "system_call_gas": "gas of a system call",
        },
        constant=True,
    ),
    *_group(
        "number",
        {
            "memory_quadratic_divisor": "the quadratic part is words squared divided by this",
            "stack_limit": "maximum number of stack items",
            "call_depth_limit": "maximum number of frames above the first",
            "tokens_per_nonzero_byte": "tokens per nonzero byte of data; a zero byte is one token",
            "gas_limit_divisor": "the gas limit changes by less than the parent's divided by this",
            "max_extra_data_size": "maximum size of a header's extra data in bytes",
            "block_hash_window": "number of ancestors that BLOCKHASH can read",
            "min_difficulty": "minimum difficulty",
            "difficulty_divisor": "the difficulty changes in steps of the parent's divided by this",
            "bomb_period": "number of blocks after which the difficulty bomb doubles",
            "max_uncles": "maximum number of uncles of a block",
            "max_uncle_depth": "maximum distance between the numbers of an uncle and its block",
        },
        constant=True,
    ),
)

PARAMETERS: dict[str, Parameter] = {
    p.name: p for p in (*_GAS, *_GAS_EACH, *_LIMITS, *_FLAGS, *_CONSTANTS)
}
"""Name -> parameter."""
