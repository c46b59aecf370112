"""The numbers in which the two rule sets of Amsterdam differ, and a switch between them."""

from dataclasses import dataclass

TRANSACTION_GAS_CAP = 2**24
STIPEND = 2_300
WARM = 100
COLD_SLOT = 2_100
SENTRY = 2_300
CODE_WORD = 6
INIT_CODE_WORD = 2
HASH_WORD = 6
LIST_ADDRESS_FLOOR = 80 * 16
LIST_KEY_FLOOR = 128 * 16
FLOOR_OF_BYTE = 64
SELFDESTRUCT = 5_000
SYSTEM_GAS = 30_000_000
ITEM_GAS = 2_000


@dataclass(frozen=True)
class Numbers:
    """The numbers of a rule set: gas costs, and sizes of new state and of code in bytes.

    ``frozen``: whether these are the rules of August 2026. Otherwise they are those of April.
    """

    frozen: bool
    account_bytes: int
    slot_bytes: int
    cold_account: int
    slot_write: int
    clear_refund: int
    restore_refund: int
    create: int
    call_value: int
    list_address: int
    list_key: int
    authorization: int
    code_limit: int
    code_reading: int
    dead_beneficiary: int
    system_reservoir: int
    most_gas: int
    delegation_bytes: int = 23

    def price(self, block_gas_limit: int) -> int:
        """Returns the gas per byte of new state in a block with this gas limit."""
        if self.frozen:
            return 1_530
        raw = -(-block_gas_limit * 2_628_000 // (2 * 100 * 2**30))
        shifted = raw + 9_578
        lost = max(shifted.bit_length() - 5, 0)
        rounded = shifted >> lost << lost
        return rounded - 9_578 if rounded > 9_578 else 1


APRIL = Numbers(
    frozen=False, account_bytes=112, slot_bytes=32, cold_account=2_600, slot_write=2_900,
    clear_refund=4_800, restore_refund=2_800, create=9_000, call_value=9_000,
    list_address=2_400 + LIST_ADDRESS_FLOOR, list_key=1_900 + LIST_KEY_FLOOR,
    authorization=7_500, code_limit=32_768, code_reading=0, dead_beneficiary=0,
    system_reservoir=0, most_gas=2**64 - 1,
)  # fmt: skip
FROZEN = Numbers(
    frozen=True, account_bytes=120, slot_bytes=64, cold_account=3_000, slot_write=10_000,
    clear_refund=11_616, restore_refund=10_000, create=12_000, call_value=11_300,
    list_address=2_900 + LIST_ADDRESS_FLOOR, list_key=2_000 + LIST_KEY_FLOOR,
    authorization=7_816, code_limit=65_536, code_reading=100, dead_beneficiary=9_000,
    system_reservoir=1_566_720, most_gas=2**32 - 1,
)  # fmt: skip
RULE_SETS = {"amsterdam-2026-04": APRIL, "amsterdam": FROZEN}
