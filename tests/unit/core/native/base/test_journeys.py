"""Tests sequences of token operations, each starting with the creation of the token."""

from __future__ import annotations

from typing import Any

import pytest

from fastevm.core.primitives.keccak import keccak256
from fastevm.testing.native_calls import POLICY_REGISTRY

from .support import (
    ALICE,
    BOB,
    CAROL,
    MEMO,
    PANIC,
    STABLECOIN,
    VERSIONS,
    Tokens,
    asset_params,
    call_data,
    error,
    role,
    stablecoin_params,
    word,
)

OWNER, USER = b"\xd0" * 20, b"\x02" * 20
ROLES = ("MINT", "BURN", "BURN_BLOCKED", "PAUSE", "UNPAUSE", "METADATA", "OPERATOR", "SEIZE")
COIN = 10**18
WAD = 10**18
LATER = ("cobalt", "denim")
BLOCKLIST, ALLOWLIST = 0, 1
TRANSFER_FEATURE, SEIZE_FEATURE = 0, 3


def topic(signature: str) -> bytes:
    return keccak256(signature.encode())


def scope(name: str) -> bytes:
    return keccak256(name.encode())


class Journey(Tokens):
    """A token. Its owner has every role."""

    def __init__(self, fork: str, variant: int = 0, **options: Any) -> None:
        params = asset_params(admin=OWNER, decimals=18)
        if variant == STABLECOIN:
            params = stablecoin_params(admin=OWNER)
        super().__init__(fork, variant, params, **options)
        for name in ROLES:
            self.by_owner("grantRole(bytes32,address)", role(f"{name}_ROLE"), OWNER)

    def by_owner(self, signature: str, *values: Any) -> bytes:
        return self.do(signature, *values, sender=OWNER)

    def refused_to_owner(self, signature: str, *values: Any) -> bytes:
        return self.refusal(signature, *values, sender=OWNER)

    def number(self, signature: str, *values: Any) -> int:
        return int.from_bytes(self.do(signature, *values), "big")

    def balance(self, account: bytes) -> int:
        return self.number("balanceOf(address)", account)

    def policy(self, kind: int, *accounts: bytes) -> int:
        """Creates a policy with these accounts. The owner is its admin."""
        signature = "createPolicyWithAccounts(address,uint8,address[])"
        data = call_data(signature, OWNER, kind, accounts)
        done = self.call(POLICY_REGISTRY, data, sender=OWNER)
        assert done.status == "success", done
        return int.from_bytes(done.output, "big")

    def use(self, name: str, policy: int) -> None:
        self.by_owner("updatePolicy(bytes32,uint64)", scope(name), policy)

    def topics(self, signature: str, *values: Any, sender: bytes = OWNER) -> list[bytes]:
        """Makes a call that must succeed. Returns topic 0 of each of its logs."""
        done = self.ask(signature, *values, sender=sender)
        assert done.status == "success", done
        return [log.topics[0] for log in done.logs]


TRANSFER = topic("Transfer(address,address,uint256)")
MEMO_EVENT = topic("Memo(address,bytes32)")


@pytest.mark.parametrize("fork", VERSIONS)
def test_an_asset_is_minted_moved_announced_and_burned(fork: str) -> None:
    token = Journey(fork)
    token.by_owner("updateSupplyCap(uint256)", 10**9 * COIN)
    token.by_owner("mint(address,uint256)", ALICE, 1_000 * COIN)
    token.by_owner("mint(address,uint256)", OWNER, 500 * COIN)
    token.by_owner("transfer(address,uint256)", BOB, 200 * COIN)
    memo = token.topics("transferWithMemo(address,uint256,bytes32)", BOB, COIN, MEMO)
    assert memo == [TRANSFER, MEMO_EVENT]
    token.by_owner("approve(address,uint256)", USER, 50 * COIN)
    moved = "transferFrom(address,address,uint256)"
    token.do(moved, OWNER, BOB, 50 * COIN, sender=USER)
    assert token.number("allowance(address,address)", OWNER, USER) == 0
    assert token.balance(BOB) == 251 * COIN

    batch = call_data("batchMint(address[],uint256[])", [ALICE, BOB], [10 * COIN, 20 * COIN])
    announce = "announce(bytes[],string,string,string)"
    token.by_owner(announce, [batch], "one", "", "")
    assert token.number("isAnnouncementIdUsed(string)", "one") == 1
    assert (token.balance(ALICE), token.balance(BOB)) == (1_010 * COIN, 271 * COIN)
    used = token.refused_to_owner(announce, [], "one", "", "")
    assert used == error("AnnouncementIdAlreadyUsed(string)", "one")
    doubled = call_data("updateMultiplier(uint256)", 2 * WAD)
    token.by_owner(announce, [doubled], "two", "", "")
    assert token.number("scaledBalanceOf(address)", ALICE) == 2 * 1_010 * COIN
    raw = 12_345
    scaled = token.number("toScaledBalance(uint256)", raw)
    assert abs(token.number("toRawBalance(uint256)", scaled) - raw) <= 1
    too_much = call_data("toScaledBalance(uint256)", 2**256 - 1)
    assert token.refused_to_owner(announce, [too_much], "three", "", "") == PANIC
    assert token.number("isAnnouncementIdUsed(string)", "three") == 0

    token.by_owner("burn(uint256)", 100 * COIN)
    assert token.number("totalSupply()") == 1_430 * COIN


@pytest.mark.parametrize("fork", VERSIONS)
def test_amounts_and_rights_are_limits(fork: str) -> None:
    token = Journey(fork)
    token.by_owner("mint(address,uint256)", OWNER, 5)
    token.by_owner("updateSupplyCap(uint256)", 5)
    over = token.refused_to_owner("mint(address,uint256)", OWNER, 1)
    assert over == error("SupplyCapExceeded(uint256,uint256)", 5, 6)
    poor = token.refusal("transfer(address,uint256)", BOB, 1, sender=USER)
    assert poor == error("InsufficientBalance(address,uint256,uint256)", USER, 0, 1)
    moved = "transferFrom(address,address,uint256)"
    unapproved = token.refusal(moved, OWNER, BOB, 1, sender=USER)
    assert unapproved == error("InsufficientAllowance(address,uint256,uint256)", USER, 0, 1)
    no_role = token.refusal("mint(address,uint256)", USER, 1, sender=USER)
    assert no_role == error(
        "AccessControlUnauthorizedAccount(address,bytes32)", USER, role("MINT_ROLE")
    )
    token.by_owner("pause(uint8[])", [TRANSFER_FEATURE])
    paused = error("ContractPaused(uint8)", TRANSFER_FEATURE)
    assert token.refused_to_owner("transfer(address,uint256)", BOB, 1) == paused
    memo = token.refused_to_owner("transferWithMemo(address,uint256,bytes32)", BOB, 1, MEMO)
    assert memo == paused
    token.by_owner("unpause(uint8[])", [TRANSFER_FEATURE])
    token.by_owner("transfer(address,uint256)", BOB, 1)


@pytest.mark.parametrize("fork", VERSIONS)
def test_denim_asks_who_executes_a_transfer_of_their_own(fork: str) -> None:
    token = Journey(fork)
    for holder in (OWNER, USER):
        token.by_owner("mint(address,uint256)", holder, 10)
    policy = token.policy(ALLOWLIST, OWNER)
    token.use("TRANSFER_EXECUTOR_POLICY", policy)
    token.by_owner("transfer(address,uint256)", BOB, 1)
    done = token.ask("transfer(address,uint256)", BOB, 1, sender=USER)
    forbidden = error("PolicyForbids(bytes32,uint64)", scope("TRANSFER_EXECUTOR_POLICY"), policy)
    assert done.output == (forbidden if fork == "denim" else word(1))


@pytest.mark.parametrize("fork", VERSIONS)
def test_denim_refuses_the_token_as_receiver(fork: str) -> None:
    token = Journey(fork)
    token.by_owner("mint(address,uint256)", OWNER, 10)
    for signature, *values in (
        ("transfer(address,uint256)", token.token, 0),
        ("mint(address,uint256)", token.token, 1),
        ("batchMint(address[],uint256[])", [token.token], [1]),
    ):
        done = token.ask(signature, *values, sender=OWNER)
        refused = fork == "denim"
        assert (done.status == "revert") is refused
        if refused:
            assert done.output == error("InvalidReceiver(address)", token.token)


@pytest.mark.parametrize("fork", VERSIONS)
def test_blocked_holders_of_a_stablecoin_lose_their_balance(fork: str) -> None:
    token = Journey(fork, STABLECOIN)
    assert token.number("decimals()") == 6
    token.by_owner("mint(address,uint256)", ALICE, 1_000)
    token.by_owner("mint(address,uint256)", BOB, 10)
    token.use("TRANSFER_SENDER_POLICY", token.policy(BLOCKLIST, ALICE))
    burned = token.topics("burnBlocked(address,uint256)", ALICE, 400)
    assert burned == [TRANSFER, topic("BurnedBlocked(address,address,uint256)")]
    assert (token.balance(ALICE), token.number("totalSupply()")) == (600, 610)
    refused = token.refused_to_owner("burnBlocked(address,uint256)", BOB, 1)
    assert refused == error("AccountNotBlocked(address)", BOB)


@pytest.mark.parametrize("fork", LATER)
def test_a_multiplier_is_scheduled_and_cancelled(fork: str) -> None:
    now = 1_000
    token = Journey(fork, timestamp=now)
    for interface, known in (("a60bf13d", 1), ("01ffc9a7", 1), ("ffffffff", 0)):
        asked = token.number("supportsInterface(bytes4)", bytes.fromhex(interface))
        assert asked == known
    schedule = "updateUIMultiplier(uint256,uint256)"
    for multiplier in (0, 2**128):
        refused = token.refused_to_owner(schedule, multiplier, now + 9)
        assert refused == error("InvalidMultiplier()")
    past = token.refused_to_owner(schedule, WAD, now)
    assert past == error("EffectiveAtInPast(uint256)", now)
    far = token.refused_to_owner(schedule, WAD, 2**64)
    assert far == error("EffectiveAtTooFar(uint256)", 2**64)
    at = now + 3_600
    token.by_owner(schedule, 3 * WAD, at)
    assert token.number("uiMultiplier()") == WAD
    assert token.number("newUIMultiplier()") == 3 * WAD
    assert token.number("effectiveAt()") == at
    twice = token.refused_to_owner(schedule, 4 * WAD, at + 1)
    assert twice == error("UIMultiplierUpdateExists(uint256)", at)
    token.by_owner("cancelUIMultiplierUpdate()")
    assert token.number("effectiveAt()") == 0
    none = token.refused_to_owner("cancelUIMultiplierUpdate()")
    assert none == error("UIMultiplierUpdateDoesNotExist()")


@pytest.mark.parametrize("fork", LATER)
def test_balances_of_exempted_accounts_are_seized(fork: str) -> None:
    token = Journey(fork)
    token.by_owner("mint(address,uint256)", ALICE, 1_000)
    token.by_owner("mint(address,uint256)", BOB, 10)
    token.use("SEIZE_EXEMPT_POLICY", token.policy(BLOCKLIST, ALICE))
    seize = "seizeWithMemo(address,address,uint256,bytes32)"
    seen = token.topics(seize, ALICE, BOB, 400, MEMO)
    assert seen == [TRANSFER, MEMO_EVENT, topic("Seized(address,address,address,uint256)")]
    assert (token.balance(ALICE), token.balance(BOB)) == (600, 410)
    safe = token.refused_to_owner(seize, BOB, CAROL, 1, MEMO)
    assert safe == error("AccountNotSeizable(address)", BOB)
    nobody = bytes(20)
    for source, target, reason in (
        (ALICE, nobody, error("InvalidReceiver(address)", nobody)),
        (nobody, BOB, error("InvalidSender(address)", nobody)),
        (ALICE, ALICE, error("InvalidReceiver(address)", ALICE)),
    ):
        assert token.refused_to_owner(seize, source, target, 1, MEMO) == reason
    token.by_owner("pause(uint8[])", [SEIZE_FEATURE])
    paused = token.refused_to_owner(seize, ALICE, BOB, 1, MEMO)
    assert paused == error("ContractPaused(uint8)", SEIZE_FEATURE)
    token.do("transfer(address,uint256)", BOB, 1, sender=ALICE)
