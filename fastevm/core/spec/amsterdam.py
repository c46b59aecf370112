"""The EIPs of Amsterdam, one entry each, and an entry with the rules of a devnet of April 2026.

Gas has two dimensions in Amsterdam (EIP-8037): growth of the state pays state gas, everything else
regular gas. An entry sets the values of its EIP. ``SNAPSHOT`` restores the values of 2026-04-21,
for which public tests were generated (execution-specs, devnets/bal/4).
"""

from .eips import Eip

_LIST_BYTE_COST = 64  # gas per byte of an access list, also in the calldata floor
_ADDRESS_LIST_COST = 20 * _LIST_BYTE_COST
_SLOT_LIST_COST = 32 * _LIST_BYTE_COST

EIP_2780 = Eip(
    2780,
    "Resource-based intrinsic transaction gas",
    parameters={
        "tx_cost": 12_000,
        "tx_create_cost": 12_000,
        "tx_recipient_cost": 3_000,
        "tx_value_cost": 6_000,
    },
)
EIP_7708 = Eip(7708, "ETH transfers emit a log", parameters={"has_transfer_logs": True})
EIP_7778 = Eip(
    7778,
    "Block gas accounting without refunds",
    parameters={"counts_gas_before_refunds": True},
)
EIP_7843 = Eip(7843, "SLOTNUM opcode", opcodes={"SLOTNUM": 2}, parameters={"has_slot_number": True})
EIP_7928 = Eip(
    7928,
    "Block-level access lists",
    parameters={"has_block_access_list": True, "block_access_item_gas": 2_000},
)
EIP_7954 = Eip(
    7954,
    "Increase maximum contract size",
    parameters={"max_code_size": 0x10000, "max_initcode_size": 0x20000},
)
EIP_7976 = Eip(
    7976,
    "Increase calldata floor cost",
    parameters={"tx_floor_token_cost": 0, "tx_floor_byte_cost": _LIST_BYTE_COST},
)
EIP_7981 = Eip(
    7981,
    "Increase access list cost",
    parameters={
        "tx_floor_address_cost": _ADDRESS_LIST_COST,
        "tx_floor_slot_cost": _SLOT_LIST_COST,
        "tx_access_address_cost": 2_400 + _ADDRESS_LIST_COST,
        "tx_access_slot_cost": 1_900 + _SLOT_LIST_COST,
    },
)
EIP_7997 = Eip(7997, "Deterministic factory contract")
EIP_8024 = Eip(
    8024,
    "Backward compatible SWAPN, DUPN, EXCHANGE",
    opcodes={"DUPN": 3, "SWAPN": 3, "EXCHANGE": 3},
)
EIP_8037 = Eip(
    8037,
    "State creation gas cost increase",
    opcodes={"CREATE": 9_000, "CREATE2": 9_000},
    parameters={
        "state_gas_version": 2,
        "state_byte_cost": 1_530,
        "account_state_bytes": 120,
        "slot_state_bytes": 64,
        "delegation_state_bytes": 23,
        "system_call_state_gas": 16 * 64 * 1_530,
        "tx_total_gas_cap": (1 << 32) - 1,
        "creates_over_storage": True,
        "code_word_cost": 6,
        "code_deposit_cost": 0,
        "call_new_account_cost": 0,
        "selfdestruct_new_account_cost": 0,
        "sstore_set_cost": 5_000 - 2_100,
        "tx_create_cost": 9_000,
        "authorization_cost": 7_500,
        "authorization_refund": 0,
    },
)
EIP_8038 = Eip(
    8038,
    "State-access gas cost update",
    opcodes={"EXTCODESIZE": 200, "EXTCODECOPY": 200, "CREATE": 12_000, "CREATE2": 12_000},
    parameters={
        "cold_account_surcharge": 3_000 - 100,
        "cold_selfdestruct_surcharge": 3_000,
        "cold_sstore_surcharge": 2_100 - 100,
        "account_write_cost": 9_000,
        "call_value_cost": 9_000 + 2_300,
        "selfdestruct_new_account_cost": 9_000,
        "sstore_set_cost": 10_000 + 100,
        "sstore_reset_cost": 10_000 + 100,
        "sstore_clear_refund": 11_616,
        "tx_create_cost": 12_000,
        "tx_access_address_cost": 2_900 + _ADDRESS_LIST_COST,
        "tx_access_slot_cost": 2_000 + _SLOT_LIST_COST,
        "authorization_cost": 7_816,
    },
)
EIP_8246 = Eip(8246, "Remove SELFDESTRUCT burn", parameters={"selfdestruct_keeps_balance": True})
EIP_8282 = Eip(
    8282,
    "Builder execution requests",
    parameters={"has_builder_requests": True},
    contracts={
        "BUILDER_DEPOSIT_CONTRACT_ADDRESS": bytes.fromhex(
            "0000bff46984e3725691fa540a8c7589300d8282"
        ),
        "BUILDER_EXIT_CONTRACT_ADDRESS": bytes.fromhex("000064d678505ad48f8ccb093bc65613800e8282"),
    },
)

SNAPSHOT = Eip(
    0,
    "Numbers and switches of execution-specs on 2026-04-21 (devnets/bal/4)",
    parameters={
        "has_burn_logs": True,
        "max_code_size": 0x8000,
        "max_initcode_size": 0x10000,
        "state_gas_version": 1,
        "state_byte_cost": 0,
        "account_state_bytes": 112,
        "slot_state_bytes": 32,
        "system_call_state_gas": 0,
        "tx_total_gas_cap": 0,
        "creates_over_storage": False,
    },
    name="the devnet of April 2026",
)
