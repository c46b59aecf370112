"""Tests a block access list as JSON: every kind of change."""

from fastevm.core.execution.block.block_access_list import (
    AccountAccess,
    CodeChange,
    NumberChange,
    SlotChanges,
    encode_access_list,
)
from fastevm.rpc_types.block_access_list import access_list_json

ADDRESS = b"\xaa" * 20


def word(value: int) -> str:
    return f"0x{value:064x}"


def test_slots_are_words_and_everything_else_is_quantities_and_data() -> None:
    account = AccountAccess(
        ADDRESS,
        (SlotChanges(1, (NumberChange(0, 5), NumberChange(16, 0))),),
        (2, 3),
        (NumberChange(1, 2**80),),
        (NumberChange(2, 1),),
        (CodeChange(3, b"\x60\x00"),),
    )
    assert access_list_json(encode_access_list([account])) == [
        {
            "address": "0x" + "aa" * 20,
            "storageChanges": [
                {
                    "key": word(1),
                    "changes": [
                        {"index": "0x0", "value": word(5)},
                        {"index": "0x10", "value": word(0)},
                    ],
                }
            ],
            "storageReads": [word(2), word(3)],
            "balanceChanges": [{"index": "0x1", "value": hex(2**80)}],
            "nonceChanges": [{"index": "0x2", "value": "0x1"}],
            "codeChanges": [{"index": "0x3", "code": "0x6000"}],
        }
    ]


def test_an_account_that_was_read_only_has_every_member_and_all_are_empty() -> None:
    (found,) = access_list_json(encode_access_list([AccountAccess(ADDRESS)]))
    assert found.pop("address") == "0x" + "aa" * 20
    assert found == {
        "storageChanges": [],
        "storageReads": [],
        "balanceChanges": [],
        "nonceChanges": [],
        "codeChanges": [],
    }
