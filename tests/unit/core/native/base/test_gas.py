"""Tests gas: values measured on Base, and the storage reads and writes of each function."""

from __future__ import annotations

from typing import Any

import pytest

from fastevm.testing.native_calls import NativeState

from .support import (
    ALICE,
    ALLOWLIST_7,
    ALLOWLIST_8,
    ASSET_ROOT,
    BOB,
    CAROL,
    MARKER,
    MEMO,
    STABLECOIN,
    TOKEN,
    Tokens,
    call_data,
    least_gas,
    role,
    short_text,
    slot,
)

BERYL_TOKEN = bytes.fromhex("b200000000000000000000b8d3746d2e56596578")
BERYL_CALLER = bytes.fromhex("aed1ffe46f5b6e14afdef764de436c38d38cd93f")
RECIPIENT = bytes.fromhex("5de27f402f7eb08f767ff0b794e7e118d2bc1fe6")
DEAD = bytes(18) + b"\xde\xad"
COBALT_TOKEN = bytes.fromhex("b200000000000000000000c4c266da4035da4d13")
COBALT_CALLER = b"\x11" * 20

# Gas, function and arguments of calls that were measured on Base mainnet. All slots are zero.
BERYL: list[tuple[int, str, tuple[Any, ...]]] = [
    (106, "DEFAULT_ADMIN_ROLE()", ()),
    (2212, "balanceOf(address)", (BERYL_CALLER,)),
    (2212, "policyId(bytes32)", (role("TRANSFER_SENDER_POLICY"),)),
    (2218, "transfer(address,uint256)", (bytes(20), 0)),
    (6518, "transfer(address,uint256)", (RECIPIENT, 1)),
    (4074, "approve(address,uint256)", (RECIPIENT, 0)),
    (23974, "approve(address,uint256)", (RECIPIENT, 1)),
    (11019, "transfer(address,uint256)", (RECIPIENT, 0)),
    (9019, "transfer(address,uint256)", (BERYL_CALLER, 0)),
    (12080, "transferWithMemo(address,uint256,bytes32)", (RECIPIENT, 0, b"\x42".rjust(32, b"\0"))),
    (14981, "transferFrom(address,address,uint256)", (BERYL_CALLER, RECIPIENT, 0)),
]
# Gas, function, arguments and caller of calls, measured at block 47,227,231 of Base Sepolia.
COBALT: list[tuple[int, str, tuple[Any, ...], bytes]] = [
    (106, "SEIZE_ROLE()", (), COBALT_CALLER),
    (2338, "DOMAIN_SEPARATOR()", (), COBALT_CALLER),
    (4306, "uiMultiplier()", (), COBALT_CALLER),
    (4406, "newUIMultiplier()", (), COBALT_CALLER),
    (6406, "totalSupplyUI()", (), COBALT_CALLER),
    (6412, "balanceOfUI(address)", (COBALT_CALLER,), COBALT_CALLER),
    (2212, "policyId(bytes32)", (role("SEIZE_EXEMPT_POLICY"),), COBALT_CALLER),
    (15119, "transfer(address,uint256)", (DEAD, 0), COBALT_CALLER),
    (21181, "transferFrom(address,address,uint256)", (COBALT_CALLER, DEAD, 0), DEAD),
    (
        4330, "seizeWithMemo(address,address,uint256,bytes32)",
        (COBALT_CALLER, DEAD, 0, bytes(32)), COBALT_CALLER,
    ),
    (
        7594, "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)",
        (COBALT_CALLER, DEAD, 0, 2**256 - 1, 0, bytes(32), bytes(32)), COBALT_CALLER,
    ),
]  # fmt: skip


def token_state(fork: str, token: bytes, storage: dict[int, int]) -> NativeState:
    state = NativeState(fork)
    state.evm.set_account(token, code=MARKER, storage=storage)
    return state


@pytest.mark.parametrize(("expected", "signature", "values"), BERYL)
def test_calls_need_the_gas_measured_on_mainnet(
    expected: int, signature: str, values: tuple[Any, ...]
) -> None:
    state = token_state("beryl", BERYL_TOKEN, {})
    data = call_data(signature, *values)
    assert least_gas(state, BERYL_TOKEN, data, BERYL_CALLER) == expected


def test_a_transfer_spends_less_than_it_needs() -> None:
    """SSTORE requires that more than 2,300 gas is left, so a call needs more gas than it uses."""
    state = token_state("beryl", BERYL_TOKEN, {})
    done = state.call(
        BERYL_TOKEN, call_data("transfer(address,uint256)", RECIPIENT, 0), sender=BERYL_CALLER
    )
    assert done.gas_used == 10_574


def test_a_transfer_asks_the_policies_of_sender_and_receiver() -> None:
    state = token_state("beryl", BERYL_TOKEN, {TOKEN + 9: 5 | 5 << 64 | 5 << 128})
    data = call_data("transfer(address,uint256)", DEAD, 0)
    assert least_gas(state, BERYL_TOKEN, data, BERYL_CALLER) == 15_219


@pytest.mark.parametrize(("expected", "signature", "values", "caller"), COBALT)
def test_calls_need_the_gas_measured_on_sepolia(
    expected: int, signature: str, values: tuple[Any, ...], caller: bytes
) -> None:
    storage = {
        TOKEN: short_text("Summit Commerce Corp."),
        TOKEN + 9: 0x4F | 0x4F << 64 | 0x45 << 128,
    }
    state = token_state("cobalt", COBALT_TOKEN, storage)
    assert least_gas(state, COBALT_TOKEN, call_data(signature, *values), caller) == expected


# --- reads and writes -----------------------------------------------------------------------------

DATA_WORD, ACCOUNT, LOAD, STORE = 6, 100, 100, 100
LOG, TOPIC, BYTE = 375, 375, 8


def steady_gas(t: Tokens, signature: str, values: tuple[Any, ...], slots: list[int]) -> int:
    """Returns what a call pays for storage while ``slots`` are warm.

    This is its gas without the charges for the account access, the calldata and the logs.
    """
    layer = t.evm.state
    data = call_data(signature, *values)
    done = t.evm.call(t.token, data, sender=ALICE, commit=True, access_list=[(t.token, slots)])
    assert done.success, done
    t.evm.state = layer
    logs = sum(LOG + TOPIC * len(log.topics) + BYTE * len(log.data) for log in done.logs)
    return done.gas_used - DATA_WORD * -(-len(data) // 32) - ACCOUNT - logs


def everything(t: Tokens) -> list[int]:
    """Returns the slots that the functions in the tests may access."""
    fields = [TOKEN + n for n in range(15)] + [ASSET_ROOT + n for n in range(5)]
    people = (ALICE, BOB, CAROL)
    elements = [slot(TOKEN + 4, who) for who in people]
    elements += [slot(TOKEN + 5, owner, who) for owner in people for who in people]
    roles = ("MINT", "BURN", "SEIZE", "PAUSE", "METADATA", "OPERATOR")
    names = ["DEFAULT_ADMIN_ROLE", *(f"{name}_ROLE" for name in roles)]
    elements += [slot(TOKEN + 6, role(name), who) for name in names for who in people]
    elements += [slot(TOKEN + 7, role(name)) for name in names]
    return fields + elements + [slot(ASSET_ROOT + 2, b"id-1")]


def prepared(fork: str, variant: int = 0) -> Tokens:
    t = Tokens(fork, variant)
    for name in ("DEFAULT_ADMIN", "MINT", "BURN", "SEIZE", "PAUSE", "METADATA", "OPERATOR"):
        t.give_role(f"{name}_ROLE", ALICE)
    t.seed(TOKEN + 8, 1)
    t.fund(ALICE, 100)
    t.seed(slot(TOKEN + 4, BOB), 100)
    t.seed(slot(TOKEN + 5, BOB, ALICE), 50)
    t.seed(TOKEN + 14, ALLOWLIST_7)
    return t


# Fork, function, arguments, number of reads, number of writes. "+ 1" is the read of the caller's
# role. Writes do not change values, so each costs 100 gas, like a read. The cold slot of the
# registry that a seizure reads counts as 21 reads.
FOOTPRINTS: list[tuple[str, str, tuple[Any, ...], int, int]] = [
    ("beryl", "transfer(address,uint256)", (BOB, 0), 5, 2),
    ("cobalt", "transfer(address,uint256)", (BOB, 0), 4, 2),
    ("denim", "transfer(address,uint256)", (BOB, 0), 4, 2),
    ("beryl", "approve(address,uint256)", (BOB, 0), 0, 1),
    ("beryl", "mint(address,uint256)", (BOB, 0), 5 + 1, 2),
    ("beryl", "burn(uint256)", (0,), 4, 2),
    ("cobalt", "seizeWithMemo(address,address,uint256,bytes32)", (BOB, CAROL, 0, MEMO), 6 + 21, 2),
    ("beryl", "updateSupplyCap(uint256)", (2**128 - 1,), 2 + 1, 1),
    ("beryl", "updateName(string)", ("Base Asset",), 0 + 1, 1),
    ("cobalt", "updateName(string)", ("Base Asset",), 1 + 1, 1),
    ("cobalt", "cancelUIMultiplierUpdate()", (), 3 + 1, 0),
    ("beryl", "batchMint(address[],uint256[])", ([BOB, CAROL], [0, 0]), 11 + 1, 4),
]


@pytest.mark.parametrize(("fork", "signature", "values", "loads", "stores"), FOOTPRINTS)
def test_functions_read_and_write_as_often_as_the_reference_client(
    fork: str, signature: str, values: tuple[Any, ...], loads: int, stores: int
) -> None:
    t = prepared(fork)
    if signature.startswith("cancel"):
        t.seed(ASSET_ROOT + 4, 3 * 10**18 | 1000 << 128)
        # Only this function changes a slot: its write costs 2,900 gas, as much as 29 other writes.
        loads, stores = loads, 29
    gas = steady_gas(t, signature, values, everything(t))
    assert gas == LOAD * loads + STORE * stores


def test_a_missing_policy_costs_one_read_of_a_stablecoin_in_beryl() -> None:
    """A stablecoin reads its old policy before it looks up the new one. An asset does not."""
    used = []
    for variant in (0, STABLECOIN):
        t = prepared("beryl", variant)
        done = t.ask("updatePolicy(bytes32,uint64)", role("TRANSFER_SENDER_POLICY"), ALLOWLIST_8)
        assert done.status == "revert"
        used.append(done.gas_used)
    assert used[1] - used[0] == 2100
