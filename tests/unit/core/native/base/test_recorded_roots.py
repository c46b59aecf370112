"""Tests that token operations give the events and storage of the reference client.

A digest is a hash of all events and of every written slot. Some calls were recorded with the token
factory as the caller. Here an admin makes them: their events and slots are equal, and the digest
omits the admin's role.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from fastevm.core.primitives.keccak import keccak256
from fastevm.testing.native_calls import FACTORY, POLICY_REGISTRY, NativeState
from tests.shared_data import SHARED

from .support import (
    ADMIN,
    ADMIN2,
    ALICE,
    ALLOWLIST_7,
    ALLOWLIST_8,
    ASSET,
    ASSET_ROOT,
    BOB,
    CAROL,
    CREATOR,
    MEMO,
    POLICIES,
    STABLECOIN,
    TOKEN,
    VERSIONS,
    Tokens,
    asset_params,
    call_data,
    create_data,
    role,
    short_text,
    slot,
    stablecoin_params,
    word,
)

TOKEN_ADDRESS = b"\x22" * 20
Step = Callable[[Tokens], None]


@cache
def vectors() -> dict[str, Any]:
    return json.loads((SHARED / "base" / "base-vectors.json").required.read_text())


def transfer_unprivileged(t: Tokens) -> None:
    t.fund(ALICE, 100)
    t.seed(TOKEN + 9, ALLOWLIST_7 | ALLOWLIST_7 << 64)
    t.authorize(ALLOWLIST_7, ALICE)
    t.authorize(ALLOWLIST_7, BOB)
    t.do("transfer(address,uint256)", BOB, 10)


def transfer_from(t: Tokens) -> None:
    t.fund(ALICE, 100)
    t.seed(slot(TOKEN + 5, ALICE, BOB), 40)
    t.do("transferFrom(address,address,uint256)", ALICE, BOB, 30, sender=BOB)


def transfer_from_with_memo(t: Tokens) -> None:
    t.fund(ALICE, 100)
    t.seed(slot(TOKEN + 5, ALICE, BOB), 40)
    signature = "transferFromWithMemo(address,address,uint256,bytes32)"
    t.do(signature, ALICE, CAROL, 30, MEMO, sender=BOB)


def mint(t: Tokens) -> None:
    t.give_role("MINT_ROLE", ADMIN, counts=False)
    t.do("mint(address,uint256)", BOB, 100, sender=ADMIN)


def mint_with_memo(t: Tokens) -> None:
    t.give_role("MINT_ROLE", ADMIN, counts=False)
    t.do("mintWithMemo(address,uint256,bytes32)", BOB, 40, MEMO, sender=ADMIN)


def burn_with_memo(t: Tokens) -> None:
    t.fund(ALICE, 100)
    t.give_role("BURN_ROLE", ALICE)
    t.do("burnWithMemo(uint256,bytes32)", 40, MEMO)


def pause(t: Tokens) -> None:
    t.give_role("PAUSE_ROLE", ADMIN, counts=False)
    t.do("pause(uint8[])", [1], sender=ADMIN)


def update_supply_cap(t: Tokens) -> None:
    t.give_role("DEFAULT_ADMIN_ROLE", ADMIN, counts=False)
    t.do("updateSupplyCap(uint256)", 1000, sender=ADMIN)


def update_symbol(t: Tokens) -> None:
    t.give_role("METADATA_ROLE", ADMIN, counts=False)
    t.do("updateSymbol(string)", "USDX", sender=ADMIN)


def as_admin(t: Tokens, signature: str, *values: Any) -> None:
    """Makes a call for which the recordings have the factory as the caller.

    The digest omits the slots with the admin's role and the number of admins.
    """
    t.give_role("DEFAULT_ADMIN_ROLE", ADMIN, counts=False)
    t.seed(TOKEN + 8, 1, counts=False)
    t.do(signature, *values, sender=ADMIN)


def grant_role(t: Tokens) -> None:
    as_admin(t, "grantRole(bytes32,address)", role("MINT_ROLE"), ALICE)


def renounce_role(t: Tokens) -> None:
    t.give_role("MINT_ROLE", ALICE)
    t.do("renounceRole(bytes32,address)", role("MINT_ROLE"), ALICE)


def set_role_admin(t: Tokens) -> None:
    as_admin(t, "setRoleAdmin(bytes32,bytes32)", role("MINT_ROLE"), role("METADATA_ROLE"))


def grant_again(t: Tokens) -> None:
    t.give_role("DEFAULT_ADMIN_ROLE", ADMIN)
    t.seed(TOKEN + 8, 1)
    t.give_role("MINT_ROLE", ALICE)
    t.do("grantRole(bytes32,address)", role("MINT_ROLE"), ALICE, sender=ADMIN)


def permit(t: Tokens) -> None:
    # This signature differs from the recorded one, because the recorded token has a different
    # address. The events and slots are equal.
    from eth_account import Account
    from eth_account.messages import encode_typed_data

    owner = Account.from_key("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
    name = "Base Asset" if t.variant == ASSET else ("USD Coin", "Base Dollar")[t.fork == "denim"]
    domain = {"name": name, "version": "1", "chainId": 8453, "verifyingContract": t.token}
    fields = ("owner:address", "spender:address", "value:uint256", "nonce:uint256")
    types = [
        {"name": field.split(":")[0], "type": field.split(":")[1]}
        for field in (*fields, "deadline:uint256")
    ]
    message = {
        "owner": owner.address, "spender": BOB, "value": 500, "nonce": 0, "deadline": 2**256 - 1,
    }  # fmt: skip
    signed = owner.sign_message(encode_typed_data(domain, {"Permit": types}, message))
    t.do(
        "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)",
        bytes.fromhex(owner.address[2:]), BOB, 500, 2**256 - 1, signed.v,
        signed.r.to_bytes(32, "big"), signed.s.to_bytes(32, "big"),
    )  # fmt: skip


def announcement_id_used(t: Tokens) -> None:
    t.seed(slot(ASSET_ROOT + 2, b"evt-1"), 1)
    assert t.do("isAnnouncementIdUsed(string)", "evt-1")[-1] == 1


def batch_mint(t: Tokens) -> None:
    t.give_role("MINT_ROLE", ALICE)
    t.do("batchMint(address[],uint256[])", [BOB, CAROL], [30, 70])


def remove_metadata(t: Tokens) -> None:
    t.give_role("METADATA_ROLE", ALICE)
    t.seed(slot(ASSET_ROOT + 3, b"category"), short_text("commodity"))
    t.do("updateExtraMetadata(string,string)", "category", "")


def announce(t: Tokens) -> None:
    t.give_role("OPERATOR_ROLE", ALICE)
    inner = call_data("updateMultiplier(uint256)", 2 * 10**18)
    t.do(
        "announce(bytes[],string,string,string)",
        [inner], "2026-split", "2:1 split", "ipfs://split",
    )  # fmt: skip


def clear_pending(t: Tokens) -> None:
    t.give_role("OPERATOR_ROLE", ALICE)
    t.do("updateUIMultiplier(uint256,uint256)", 3 * 10**18, 1000)
    t.do("updateMultiplier(uint256)", 5 * 10**18)


def fold_matured(t: Tokens) -> None:
    t.give_role("OPERATOR_ROLE", ALICE)
    t.do("updateUIMultiplier(uint256,uint256)", 2 * 10**18, 1000)
    t.evm.set_block(timestamp=1500)
    t.do("updateUIMultiplier(uint256,uint256)", 4 * 10**18, 2000)


def seize(t: Tokens) -> None:
    t.fund(ALICE, 100)
    t.give_role("SEIZE_ROLE", ADMIN)
    t.seed(TOKEN + 14, ALLOWLIST_7 | ALLOWLIST_8 << 64)
    t.authorize(ALLOWLIST_8, BOB)
    t.do("seizeWithMemo(address,address,uint256,bytes32)", ALICE, BOB, 40, MEMO, sender=ADMIN)


CORE: dict[str, Step] = {
    "FRESH": lambda t: None,
    "TRANSFER_UNPRIV": transfer_unprivileged,
    "TRANSFER_FROM_FINITE": transfer_from,
    "TRANSFER_FROM_WITH_MEMO": transfer_from_with_memo,
    "MINT_PRIV": mint,
    "MINT_WITH_MEMO": mint_with_memo,
    "BURN_WITH_MEMO": burn_with_memo,
    "PAUSE": pause,
    "UPDATE_SUPPLY_CAP": update_supply_cap,
    "UPDATE_SYMBOL": update_symbol,
    "GRANT_ROLE": grant_role,
    "RENOUNCE_ROLE": renounce_role,
    "SET_ROLE_ADMIN": set_role_admin,
    "PERMIT": permit,
    "GRANT_IDEMPOTENT": grant_again,
}
ASSETS: dict[str, Step] = {
    "ANNOUNCE_ID_USED": announcement_id_used,
    "BATCH_MINT": batch_mint,
    "METADATA_REMOVE": remove_metadata,
}
ASSETS_BERYL: dict[str, Step] = {"ANNOUNCE": announce}
ASSETS_COBALT: dict[str, Step] = {
    "CLEARS_PENDING": clear_pending,
    "FOLDS_MATURED": fold_matured,
    "SEIZE": seize,
}
CASES = [
    (fork, variant, name, step)
    for fork in ("beryl", "cobalt", "denim")
    for variant in (ASSET, STABLECOIN)
    for name, step in {
        **CORE,
        **(ASSETS if variant == ASSET else {}),
        **(ASSETS_BERYL if variant == ASSET and fork == "beryl" else {}),
        **(ASSETS_COBALT if variant == ASSET and fork != "beryl" else {}),
    }.items()
]


def started(fork: str, variant: int) -> Tokens:
    if variant == ASSET:
        return Tokens(fork)
    if fork == "denim":
        params = stablecoin_params("Base Dollar", "bUSD")
        return Tokens(fork, STABLECOIN, params)
    return Tokens(fork, STABLECOIN)


@pytest.mark.parametrize(
    ("fork", "variant", "name", "step"),
    CASES,
    ids=[f"{fork}-{('asset', 'stablecoin')[variant]}-{name}" for fork, variant, name, _ in CASES],
)
def test_an_operation_gives_the_pinned_events_and_slots(
    fork: str, variant: int, name: str, step: Step
) -> None:
    roots = vectors()["golden"]["roots"]
    if variant == ASSET:
        expected = roots["asset (V1 and V2/V3 unless marked)"]
    else:
        expected = roots["stablecoin.v3" if fork == "denim" else "stablecoin.v1"]
    if variant == STABLECOIN and fork == "cobalt" and name == "FRESH":
        pytest.skip("no root is pinned")
    tokens = started(fork, variant)
    step(tokens)
    assert tokens.digest(TOKEN_ADDRESS) == expected[name]


# Digests of a few operations. They detect a change even without the files of recordings.
SAMPLES = {
    ("beryl", "FRESH"): "e29cabf2f5d0e0eedebf4697b61ad93a4a24fa2d911d4004d641bb0b123fa091",
    ("beryl", "ANNOUNCE"): "bc541cb4aecf8c93e8bc0b495eb7d1011c614fcb65704b848a961bb7207dcb83",
    (
        "denim",
        "TRANSFER_UNPRIV",
    ): "63c542ccf49f3be8d67a0e5fc4d1d0f6126e81157d1b1b53b969154ddf9a4f8b",
    ("denim", "PERMIT"): "073a87de0e60125aeb9df668b6d9462d33559bd8696360dc0fc87ad062545803",
    ("cobalt", "SEIZE"): "1aba53dba437cfde3f7938c1d4c02cce8c3df5b629dfa49637edaac20e052a6a",
    ("cobalt", "FOLDS_MATURED"): "a0942971f4c3b38bd0d2ebd19730bda7585f517774ffaf8d7c5ba21c5cf63475",
}


@pytest.mark.parametrize(("fork", "name"), SAMPLES, ids=lambda value: value)
def test_a_sample_needs_no_recordings(fork: str, name: str) -> None:
    step = {**CORE, **ASSETS, **ASSETS_BERYL, **ASSETS_COBALT}[name]
    tokens = Tokens(fork)
    step(tokens)
    assert tokens.digest(TOKEN_ADDRESS) == SAMPLES[fork, name]


# --- registry and factory -------------------------------------------------------------------------


class Registry(NativeState):
    """A state that records the events and written slots of the PolicyRegistry for its digest."""

    def __init__(self, fork: str) -> None:
        super().__init__(fork)
        self.events = b""
        self.written: set[int] = set()

    def do(self, signature: str, *values: Any, sender: bytes = ADMIN) -> int:
        before = self.evm.state.storage_items(POLICY_REGISTRY)
        done = self.call(POLICY_REGISTRY, call_data(signature, *values), sender=sender)
        assert done.status == "success", done
        after = self.evm.state.storage_items(POLICY_REGISTRY)
        self.written |= {k for k in before | after if before.get(k) != after.get(k)}
        self.events += b"".join(b"".join(log.topics) + log.data for log in done.logs)
        return int.from_bytes(done.output, "big")

    def digest(self) -> str:
        values = self.evm.state.storage_items(POLICY_REGISTRY)
        rows = sorted(word(key) + word(values.get(key, 0)) for key in self.written)
        return keccak256(self.events + b"".join(rows)).hex()


def create_allowlist(r: Registry) -> int:
    return r.do("createPolicy(address,uint8)", ADMIN, 1)


def stage_and_finalize(r: Registry) -> None:
    policy = create_allowlist(r)
    r.do("stageUpdateAdmin(uint64,address)", policy, ADMIN2)
    r.written.add(slot(POLICIES + 2, policy))
    r.do("finalizeUpdateAdmin(uint64)", policy, sender=ADMIN2)


def create_union(r: Registry) -> None:
    first, second = create_allowlist(r), create_allowlist(r)
    r.do("updateAllowlist(uint64,bool,address[])", first, True, [ALICE])
    r.do("updateAllowlist(uint64,bool,address[])", second, True, [BOB])
    r.do("createCompositePolicy(address,uint8,uint64[])", ADMIN, 2, [first, second])


REGISTRY: dict[str, tuple[int, Callable[[Registry], object]]] = {
    "create_blocklist": (1, lambda r: r.do("createPolicy(address,uint8)", ADMIN, 0)),
    "create_with_accounts (ALLOWLIST, ALICE, BOB)": (
        1,
        lambda r: r.do("createPolicyWithAccounts(address,uint8,address[])", ADMIN, 1, [ALICE, BOB]),
    ),
    "update_allowlist (create, add ALICE)": (
        1,
        lambda r: r.do(
            "updateAllowlist(uint64,bool,address[])", create_allowlist(r), True, [ALICE]
        ),
    ),
    "stage_finalize_admin (allowlist; ADMIN2)": (1, stage_and_finalize),
    "create_composite_union (allowlists a,b; ALICE in a, BOB in b; UNION[a,b])": (
        2,
        create_union,
    ),
}
REGISTRY_CASES = [
    (fork, name)
    for fork, version in VERSIONS.items()
    for name, (first, _) in REGISTRY.items()
    if version >= first
]


@pytest.mark.parametrize(("fork", "name"), REGISTRY_CASES)
def test_the_registry_gives_the_pinned_events_and_slots(fork: str, name: str) -> None:
    expected = vectors()["golden"]["policyRegistry"][name]
    registry = Registry(fork)
    REGISTRY[name][1](registry)
    assert registry.digest() == expected


CREATIONS: dict[str, tuple[int, bytes, list[bytes]]] = {
    "create_asset": (ASSET, asset_params(admin=ADMIN), []),
    "create_stablecoin": (STABLECOIN, stablecoin_params(admin=ADMIN), []),
    "create_with_init_calls (asset, mint ALICE 1000)": (
        ASSET, asset_params(admin=ADMIN), [call_data("mint(address,uint256)", ALICE, 1000)],
    ),
    "create_zero_admin (asset)": (ASSET, asset_params(), []),
    "create_stablecoin_with_init_calls (mint ALICE 500)": (
        STABLECOIN, stablecoin_params(admin=ADMIN),
        [call_data("mint(address,uint256)", ALICE, 500)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("fork", VERSIONS)
@pytest.mark.parametrize("name", CREATIONS)
def test_the_factory_gives_the_pinned_events_and_slots(fork: str, name: str) -> None:
    golden = vectors()["golden"]["factory"]
    variant, params, calls = CREATIONS[name]
    state = NativeState(fork)
    done = state.call(FACTORY, create_data(variant, params, calls), sender=CREATOR)
    assert done.status == "success", done
    token = done.output[-20:]
    assert f"0x{token.hex()}" == golden["assetAddress" if variant == ASSET else "stablecoinAddress"]
    events = b"".join(
        b"".join(log.topics) + log.data
        for address in (FACTORY, token)
        for log in done.logs
        if log.address == address
    )
    values = state.evm.state.storage_items(token)
    written = set(values) | ({ASSET_ROOT + 1} if variant == ASSET else set())
    rows = sorted(token + word(key) + word(values.get(key, 0)) for key in written)
    assert keccak256(events + b"".join(rows)).hex() == golden[name]


def test_short_strings_are_in_their_slot() -> None:
    tokens = Tokens("beryl")
    assert tokens.evm.storage(tokens.token, TOKEN) == short_text("Base Asset")
