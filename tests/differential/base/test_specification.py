"""Tests `specification` against known gas and state hashes of Base's contracts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from eth_hash.auto import keccak
from eth_keys import keys

from tests.shared_data import SHARED

from .specification import factory, policies, token
from .specification.abi import call as encoded
from .specification.abi import encode, selector, word
from .specification.journal import MARKER, Frame, Journal, mapping
from .specification.machine import call

GAS = 10**8
BERYL, COBALT, DENIM = 1, 2, 3
MOST = 2**256 - 1


@pytest.fixture(scope="module")
def vectors() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SHARED / "base" / "base-vectors.json").read_text())
    return found


def address(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


TOKEN = address("22" * 20)
ALICE, BOB, CAROL = address("a1" * 20), address("b0" * 20), address("ca" * 20)
ADMIN, ADMIN2 = address("ad" * 20), address("a2" * 20)
MEMO = b"\x77" * 32
POLICY_ID, POLICY_ID_2 = 72057594037927943, 72057594037927944
BLANK = bytes(32)


def digest(journal: Journal, *addresses: bytes) -> str:
    """Returns the hash of all events and of all slots ever written, as in the golden tests."""
    logs = [log for a in addresses for log in journal.logs if log.address == a]
    events = b"".join(b"".join(log.topics) + log.data for log in logs)
    slots = sorted(
        a + word(slot) + word(value)
        for (a, slot), value in journal.storage.items()
        if a in addresses
    )
    return keccak(events + b"".join(slots)).hex()


class Bench:
    """A token in the state in which the golden tests make the call under test."""

    def __init__(self, fork: int, *, stablecoin: tuple[str, str, str] | None = None) -> None:
        self.fork, self.journal, self.now = fork, Journal(), 0
        self.journal.codes[TOKEN] = MARKER
        self.is_asset = stablecoin is None
        name, symbol, last = stablecoin or ("Base Asset", "bASSET", 6)
        self.journal.begin_transaction((TOKEN,))
        variant = factory.ASSET if self.is_asset else factory.STABLECOIN
        maker = self.token(factory.FACTORY, privileged=True)
        ending = last.encode() if isinstance(last, str) else last
        names = (name.encode(), symbol.encode())
        factory.Factory(maker.f).initialise(maker, variant, *names, ending)

    def token(self, caller: bytes, *, privileged: bool = False) -> token.Token:
        frame = Frame(self.journal, self.fork, 8453, self.now, caller, GAS)
        found = token.Token(frame, TOKEN, privileged=privileged)
        found.is_asset = self.is_asset
        return found

    def set(self, slot: int, value: int) -> None:
        self.journal.storage[TOKEN, slot] = value

    def fund(self, account: bytes, amount: int) -> None:
        self.set(mapping(token.BALANCES, token.key(account)), amount)
        self.set(token.SUPPLY, amount)

    def role(self, name: str, account: bytes) -> None:
        self.set(mapping(token.ROLES, token.role(name), token.key(account)), 1)

    def admin(self) -> None:
        self.set(mapping(token.ROLES, BLANK, token.key(ADMIN)), 1)
        self.set(token.ADMIN_COUNT, 1)

    def allow(self, amount: int) -> None:
        self.set(mapping(token.ALLOWANCES, token.key(ALICE), token.key(BOB)), amount)

    def authorise(self, policy: int, account: bytes) -> None:
        slot = policies.entry(1, policy, token.key(account))
        self.journal.storage[policies.POLICIES, slot] = 1

    def done(self) -> str:
        return digest(self.journal, TOKEN)


def short_text(text: bytes) -> int:
    """Returns the storage word of a string of at most 31 bytes."""
    return int.from_bytes(text.ljust(31, b"\0") + bytes([2 * len(text)]), "big")


Step = Callable[[Bench], Any]


def privileged(caller: bytes, name: str, *values: Any) -> Step:
    return lambda bench: getattr(bench.token(caller, privileged=True), name)(*values)


def by(caller: bytes, name: str, *values: Any) -> Step:
    return lambda bench: getattr(bench.token(caller), name)(*values)


def after(*steps: Step) -> Step:
    def run(bench: Bench) -> None:
        for step in steps:
            step(bench)

    return run


def at(now: int) -> Step:
    return lambda bench: setattr(bench, "now", now)


def funded(amount: int = 100) -> Step:
    return lambda bench: bench.fund(ALICE, amount)


def with_role(name: str, account: bytes = ALICE) -> Step:
    return lambda bench: bench.role(name, account)


def gated(bench: Bench) -> None:
    bench.set(token.POLICY_IDS, POLICY_ID | POLICY_ID << 64)
    bench.authorise(POLICY_ID, ALICE)
    bench.authorise(POLICY_ID, BOB)


def seizable(bench: Bench) -> None:
    bench.set(token.SEIZE_POLICIES, POLICY_ID | POLICY_ID_2 << 64)
    bench.authorise(POLICY_ID_2, BOB)


def permitted(bench: Bench) -> None:
    owner = address("f39fd6e51aad88f6f4ce6ab8827279cfffb92266")
    r, s, v = signature_of(bench)
    bench.token(BOB).permit(owner, BOB, 500, MOST, v, r, s)


def signature_of(bench: Bench) -> tuple[bytes, bytes, int]:
    key = keys.PrivateKey(
        address("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
    )
    probe = bench.token(BOB)
    owner = key.public_key.to_canonical_address()
    terms = (token.PERMIT_TYPE, token.key(owner), token.key(BOB), word(500), word(0), word(MOST))
    signed = key.sign_msg_hash(keccak(b"\x19\x01" + probe.domain() + keccak(b"".join(terms))))
    return word(signed.r), word(signed.s), signed.v + 27


MINT, METADATA = token.role("MINT"), token.role("METADATA")
CASES: dict[str, Step] = {
    "FRESH": after(),
    "TRANSFER_UNPRIV": after(funded(), gated, by(ALICE, "transfer", BOB, 10)),
    "TRANSFER_FROM_FINITE": after(
        funded(), lambda b: b.allow(40), by(BOB, "transfer_from", ALICE, BOB, 30)
    ),
    "TRANSFER_FROM_WITH_MEMO": after(
        funded(),
        lambda b: b.allow(40),
        by(BOB, "transfer_from_with_memo", ALICE, CAROL, 30, MEMO),
    ),
    "MINT_PRIV": privileged(ADMIN, "mint", BOB, 100),
    "MINT_WITH_MEMO": privileged(ADMIN, "mint_with_memo", BOB, 40, MEMO),
    "BURN_WITH_MEMO": after(funded(), with_role("BURN"), by(ALICE, "burn_with_memo", 40, MEMO)),
    "PAUSE": privileged(ADMIN, "set_paused", [1], True),
    "UPDATE_SUPPLY_CAP": privileged(ADMIN, "update_cap", 1000),
    "UPDATE_SYMBOL": privileged(ADMIN, "update_symbol", b"USDX"),
    "GRANT_ROLE": privileged(ADMIN, "grant", MINT, ALICE),
    "RENOUNCE_ROLE": after(with_role("MINT"), by(ALICE, "renounce", MINT, ALICE)),
    "SET_ROLE_ADMIN": privileged(ADMIN, "set_role_admin", MINT, METADATA),
    "PERMIT": permitted,
    "GRANT_IDEMPOTENT": after(Bench.admin, with_role("MINT"), by(ADMIN, "grant", MINT, ALICE)),
}
ASSET_CASES: dict[str, Step] = {
    "BATCH_MINT": after(with_role("MINT"), by(ALICE, "batch_mint", [BOB, CAROL], [30, 70])),
    "METADATA_REMOVE": after(
        with_role("METADATA"),
        lambda b: b.set(mapping(token.METADATA, b"category"), short_text(b"commodity")),
        by(ALICE, "update_metadata", b"category", b""),
    ),
    "ANNOUNCE_ID_USED": lambda b: b.set(mapping(token.ANNOUNCEMENTS, b"evt-1"), 1),
}
OPERATOR = with_role("OPERATOR")
INNER = encoded("updateMultiplier(uint256)", 2 * 10**18)
V1_CASES: dict[str, Step] = {
    "ANNOUNCE": after(
        OPERATOR, by(ALICE, "announce", [INNER], b"2026-split", b"2:1 split", b"ipfs://split")
    )
}
V2_CASES: dict[str, Step] = {
    "CLEARS_PENDING": after(
        OPERATOR,
        at(1),
        by(ALICE, "update_ui_multiplier", 3 * 10**18, 1000),
        by(ALICE, "update_multiplier", 5 * 10**18),
    ),
    "FOLDS_MATURED": after(
        OPERATOR,
        at(1),
        by(ALICE, "update_ui_multiplier", 2 * 10**18, 1000),
        at(1500),
        by(ALICE, "update_ui_multiplier", 4 * 10**18, 2000),
    ),
    "SEIZE": after(
        funded(), with_role("SEIZE", ADMIN), seizable, by(ADMIN, "seize", ALICE, BOB, 40, MEMO)
    ),
}
STABLECOINS = {
    "stablecoin.v1": (BERYL, ("USD Coin", "USDC", "USD")),
    "stablecoin.v3": (DENIM, ("Base Dollar", "bUSD", "USD")),
}


@pytest.mark.parametrize("fork", (BERYL, COBALT, DENIM))
def test_assets_have_the_known_state_hashes(vectors: dict[str, Any], fork: int) -> None:
    known = vectors["golden"]["roots"]["asset (V1 and V2/V3 unless marked)"]
    cases = CASES | ASSET_CASES | (V1_CASES if fork == BERYL else V2_CASES)
    assert set(cases) | set(V1_CASES) | set(V2_CASES) == set(known)
    found = {}
    for name, step in cases.items():
        bench = Bench(fork)
        step(bench)
        found[name] = bench.done()
    assert found == {name: known[name] for name in cases}


@pytest.mark.parametrize("name", STABLECOINS)
def test_stablecoins_have_the_known_state_hashes(vectors: dict[str, Any], name: str) -> None:
    known = vectors["golden"]["roots"][name]
    fork, terms = STABLECOINS[name]
    found = {}
    for case, step in CASES.items():
        bench = Bench(fork, stablecoin=terms)
        step(bench)
        found[case] = bench.done()
    assert found == known


def least_gas(
    fork: int, contract: bytes, caller: bytes, data: bytes, storage: dict[int, int] | None = None
) -> int:
    """Returns the smallest gas of the frame with which the call does not run out of gas."""

    def suffices(gas: int) -> bool:
        journal = Journal()
        journal.codes[contract] = MARKER
        journal.storage |= {(contract, slot): value for slot, value in (storage or {}).items()}
        journal.begin_transaction((contract,))
        return not call(
            journal,
            fork=fork,
            chain_id=8453,
            now=10**9,
            caller=caller,
            address=contract,
            data=data,
            gas=gas,
        ).ran_out

    low, high = 0, 10**6
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle + 1, high)
    return low


DEAD = address("000000000000000000000000000000000000dead")


def test_gas_is_what_was_measured_in_beryl(vectors: dict[str, Any]) -> None:
    known = vectors["measuredGas"]["baseMainnetBeryl"]
    contract, caller = address(known["token"]), address(known["caller"])
    to = address(known["recipient"])
    transfer, approve = "transfer(address,uint256)", "approve(address,uint256)"
    with_memo, move = (
        "transferWithMemo(address,uint256,bytes32)",
        ("transferFrom(address,address,uint256)"),
    )
    calls = {
        "DEFAULT_ADMIN_ROLE()": encoded("DEFAULT_ADMIN_ROLE()"),
        "balanceOf(caller)": encoded("balanceOf(address)", caller),
        "policyId(TRANSFER_SENDER_POLICY)": encoded("policyId(bytes32)", token.SENDER),
        "transfer(0x0,0)": encoded(transfer, bytes(20), 0),
        "transfer(recipient,1) -> InsufficientBalance": encoded(transfer, to, 1),
        "approve(recipient,0)": encoded(approve, to, 0),
        "approve(recipient,1)": encoded(approve, to, 1),
        "transfer(recipient,0)": encoded(transfer, to, 0),
        "transfer(caller,0)": encoded(transfer, caller, 0),
        "transferWithMemo(recipient,0,0x..42)": encoded(with_memo, to, 0, word(0x42)),
        "transferFrom(caller,recipient,0)": encoded(move, caller, to, 0),
    }
    found = {name: least_gas(BERYL, contract, caller, data) for name, data in calls.items()}
    assert found == {name: known[name] for name in calls}
    blocklists = {token.POLICY_IDS: 5 | 5 << 64 | 5 << 128}
    data = encoded(transfer, DEAD, 0)
    assert least_gas(BERYL, contract, caller, data, blocklists) == 15219


def test_gas_is_what_was_measured_in_cobalt(vectors: dict[str, Any]) -> None:
    known = vectors["measuredGas"]["baseSepoliaCobalt"]
    contract, caller = address(known["token"]), address(known["caller"])
    name = b"Summit Commerce Corp."
    storage = {token.NAME: short_text(name), token.POLICY_IDS: 0x4F | 0x4F << 64 | 0x45 << 128}
    permit = "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)"
    calls = {
        "SEIZE_ROLE()": (caller, encoded("SEIZE_ROLE()")),
        "DOMAIN_SEPARATOR()": (caller, encoded("DOMAIN_SEPARATOR()")),
        "uiMultiplier()": (caller, encoded("uiMultiplier()")),
        "newUIMultiplier()": (caller, encoded("newUIMultiplier()")),
        "totalSupplyUI()": (caller, encoded("totalSupplyUI()")),
        "balanceOfUI(caller)": (caller, encoded("balanceOfUI(address)", caller)),
        "policyId(SEIZE_EXEMPT_POLICY)": (caller, encoded("policyId(bytes32)", token.SEIZE_EXEMPT)),
        "transfer(0x..dead,0)": (caller, encoded("transfer(address,uint256)", DEAD, 0)),
        "transferFrom(caller,0x..dead,0) by 0x..dead": (
            DEAD,
            encoded("transferFrom(address,address,uint256)", caller, DEAD, 0),
        ),
        "seizeWithMemo(caller,0x..dead,0,0) without role": (
            caller,
            encoded("seizeWithMemo(address,address,uint256,bytes32)", caller, DEAD, 0, BLANK),
        ),
        "permit(caller,0x..dead,0,max,0,0,0)": (
            caller,
            encoded(permit, caller, DEAD, 0, MOST, 0, BLANK, BLANK),
        ),
    }
    found = {
        case: least_gas(COBALT, contract, sender, data, storage)
        for case, (sender, data) in calls.items()
    }
    assert found == {case: known[case] for case in calls}


def native(journal: Journal, caller: bytes, contract: bytes, data: bytes, fork: int = BERYL) -> Any:
    return call(
        journal,
        fork=fork,
        chain_id=8453,
        now=0,
        caller=caller,
        address=contract,
        data=data,
        gas=GAS,
    )


CREATOR, SALT = address("c0" * 20), b"\x51" * 32


def activated() -> Journal:
    journal = Journal()
    for feature in (*factory.FEATURES, policies.POLICY_FEATURE):
        slot = mapping(policies.ACTIVATION_ROOT, feature)
        journal.storage[policies.ACTIVATION, slot] = 1
    journal.begin_transaction()
    return journal


def created(variant: int, admin: bytes, calls: list[bytes]) -> tuple[Journal, bytes]:
    journal = activated()
    if variant == factory.ASSET:
        terms = (1, b"Base Asset", b"bASSET", admin, 6)
    else:
        terms = (1, b"USD Coin", b"USDC", admin, b"USD")
    params = word(32) + encode(factory.PARAMETERS[variant], terms)
    result = native(
        journal, CREATOR, factory.FACTORY, encoded(factory.CREATE, variant, SALT, params, calls)
    )
    assert result.success, result.output
    return journal, result.output[12:]


def test_the_factory_has_the_known_state_hashes(vectors: dict[str, Any]) -> None:
    known = vectors["golden"]["factory"]
    mint = "mint(address,uint256)"
    cases = {
        "create_asset": (factory.ASSET, ADMIN, []),
        "create_stablecoin": (factory.STABLECOIN, ADMIN, []),
        "create_with_init_calls (asset, mint ALICE 1000)": (
            factory.ASSET,
            ADMIN,
            [encoded(mint, ALICE, 1000)],
        ),
        "create_zero_admin (asset)": (factory.ASSET, bytes(20), []),
        "create_stablecoin_with_init_calls (mint ALICE 500)": (
            factory.STABLECOIN,
            ADMIN,
            [encoded(mint, ALICE, 500)],
        ),
    }
    found = {}
    for name, terms in cases.items():
        journal, made = created(*terms)
        kind = "assetAddress" if terms[0] == factory.ASSET else "stablecoinAddress"
        assert made == address(known[kind])
        found[name] = digest(journal, factory.FACTORY, made)
    assert found == {name: known[name] for name in cases}


def test_malformed_arguments_have_their_texts(vectors: dict[str, Any]) -> None:
    cases = [c for c in vectors["decodeErrors"].values() if isinstance(c, dict)]
    assert cases
    for case in cases:
        data = address(case["calldata"])
        beryl = native(Journal(), ADMIN, policies.POLICIES, data)
        assert beryl.output == address(case["revertBeryl"])
        cobalt = native(activated(), ADMIN, policies.POLICIES, data, COBALT)
        assert cobalt.output == selector("IncompatiblePolicyType()")


def registry_digest(journal: Journal) -> str:
    events = b"".join(b"".join(log.topics) + log.data for log in journal.logs)
    slots = sorted(
        word(slot) + word(value)
        for (a, slot), value in journal.storage.items()
        if a == policies.POLICIES
    )
    return keccak(events + b"".join(slots)).hex()


def test_the_policy_registry_has_the_known_state_hashes(vectors: dict[str, Any]) -> None:
    known = vectors["golden"]["policyRegistry"]
    create, with_accounts = (
        "createPolicy(address,uint8)",
        ("createPolicyWithAccounts(address,uint8,address[])"),
    )
    first = policies.ALLOWLIST << 56 | 2
    empty = encoded(create, ADMIN, policies.ALLOWLIST)
    update = "updateAllowlist(uint64,bool,address[])"
    cases = {
        "create_blocklist": [(ADMIN, encoded(create, ADMIN, policies.BLOCKLIST))],
        "create_with_accounts (ALLOWLIST, ALICE, BOB)": [
            (ADMIN, encoded(with_accounts, ADMIN, policies.ALLOWLIST, [ALICE, BOB]))
        ],
        "update_allowlist (create, add ALICE)": [
            (ADMIN, empty),
            (ADMIN, encoded(update, first, True, [ALICE])),
        ],
        "stage_finalize_admin (allowlist; ADMIN2)": [
            (ADMIN, empty),
            (ADMIN, encoded("stageUpdateAdmin(uint64,address)", first, ADMIN2)),
            (ADMIN2, encoded("finalizeUpdateAdmin(uint64)", first)),
        ],
        "create_composite_union (allowlists a,b; ALICE in a, BOB in b; UNION[a,b])": [
            (ADMIN, empty),
            (ADMIN, empty),
            (ADMIN, encoded(update, first, True, [ALICE])),
            (ADMIN, encoded(update, first + 1, True, [BOB])),
            (
                ADMIN,
                encoded(
                    "createCompositePolicy(address,uint8,uint64[])",
                    ADMIN,
                    policies.UNION,
                    [first, first + 1],
                ),
            ),
        ],
    }
    found = {}
    for name, calls in cases.items():
        journal = activated()
        for caller, data in calls:
            fork = COBALT if "composite" in name else BERYL
            result = native(journal, caller, policies.POLICIES, data, fork)
            assert result.success, (name, result.output)
        found[name] = registry_digest(journal)
    assert found == {name: known[name] for name in cases}


@pytest.mark.parametrize("fork", (BERYL, COBALT, DENIM))
def test_delegated_calls_are_refused(fork: int) -> None:
    journal = Journal()
    journal.begin_transaction()
    result = call(
        journal,
        fork=fork,
        chain_id=8453,
        now=0,
        caller=ALICE,
        address=factory.FACTORY,
        data=b"",
        gas=GAS,
        is_direct=False,
    )
    assert (result.success, result.gas_left) == (False, GAS)
    assert result.output == selector("DelegateCallNotAllowed()")
