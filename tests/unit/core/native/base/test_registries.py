"""Tests the ActivationRegistry (features) and the PolicyRegistry: permissions and results."""

from __future__ import annotations

from typing import Any

import pytest

from fastevm.core.primitives.keccak import keccak256
from fastevm.core.spec.forks import Fork, fork_named
from fastevm.core.spec.op_stack import activation_admin
from fastevm.core.spec.schedule import ForkSchedule, schedule_for
from fastevm.testing.native_calls import ACTIVATION_REGISTRY, POLICY_REGISTRY, NativeState, Outcome

from .support import (
    ADMIN,
    ADMIN2,
    ALICE,
    BOB,
    CAROL,
    NOBODY,
    OUTSIDER,
    POLICIES,
    VERSIONS,
    call_data,
    error,
    slot,
    word,
)

FEATURE = keccak256(b"base.b20_asset")
BLOCKLIST, ALLOWLIST, UNION, INTERSECTION = range(4)
ALWAYS_BLOCK = (1 << 56) | 1
INVERTED = 1 << 63


class Registry:
    """Calls a registry. ``do`` returns the result, ``refusal`` the revert data."""

    address = POLICY_REGISTRY

    def __init__(self, fork: str | ForkSchedule, **options: Any) -> None:
        self.state = NativeState(fork, **options)

    def ask(self, signature: str, *values: Any, sender: bytes = ADMIN, **options: Any) -> Outcome:
        return self.state.call(
            self.address, call_data(signature, *values), sender=sender, **options
        )

    def do(self, signature: str, *values: Any, **options: Any) -> int:
        """Returns the first word of a successful call."""
        done = self.ask(signature, *values, **options)
        assert done.status == "success", (signature, done)
        return int.from_bytes(done.output[:32], "big")

    def refusal(self, signature: str, *values: Any, **options: Any) -> bytes:
        done = self.ask(signature, *values, **options)
        assert done.status == "revert", (signature, done)
        return done.output


class Features(Registry):
    """The ActivationRegistry of a chain whose activation admin is ADMIN."""

    address = ACTIVATION_REGISTRY

    def __init__(self, fork: str) -> None:
        super().__init__(administered(fork_named(fork)), features=())


def administered(fork: Fork) -> ForkSchedule:
    return schedule_for(fork.then(fork.name, activation_admin(ADMIN)))


# --- features -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fork", VERSIONS)
def test_the_admin_switches_a_feature_on_and_off(fork: str) -> None:
    registry = Features(fork)
    assert registry.do("isActivated(bytes32)", FEATURE) == 0
    off = error("FeatureNotActivated(bytes32)", FEATURE)
    assert registry.refusal("checkActivated(bytes32)", FEATURE) == off
    assert registry.refusal("deactivate(bytes32)", FEATURE) == off
    done = registry.ask("activate(bytes32)", FEATURE)
    (log,) = done.logs
    assert log.topics == (
        keccak256(b"FeatureActivated(bytes32,address)"), FEATURE, word(ADMIN)
    )  # fmt: skip
    assert registry.do("isActivated(bytes32)", FEATURE) == 1
    assert registry.ask("checkActivated(bytes32)", FEATURE).output == b""
    twice = registry.refusal("activate(bytes32)", FEATURE)
    assert twice == error("AlreadyActivated(bytes32)", FEATURE)
    (log,) = registry.ask("deactivate(bytes32)", FEATURE).logs
    assert log.topics[0] == keccak256(b"FeatureDeactivated(bytes32,address)")
    assert registry.do("isActivated(bytes32)", FEATURE) == 0


@pytest.mark.parametrize("fork", VERSIONS)
def test_nobody_else_switches_features(fork: str) -> None:
    registry = Features(fork)
    for function in ("activate(bytes32)", "deactivate(bytes32)"):
        refused = registry.refusal(function, FEATURE, sender=OUTSIDER)
        assert refused == error("Unauthorized(address)", OUTSIDER)
        static = registry.refusal(function, FEATURE, sender=OUTSIDER, static=True)
        assert static == error("StaticCallNotAllowed()")


def test_the_admin_is_handed_over_from_cobalt_on() -> None:
    assert Features("beryl").ask("setAdmin(address)", ADMIN2).status == "revert"
    registry = Features("cobalt")
    assert registry.do("admin()") == int.from_bytes(ADMIN, "big")
    zero = registry.refusal("setAdmin(address)", NOBODY, sender=OUTSIDER)
    assert zero == error("ZeroAdminAddress()")
    refused = registry.refusal("setAdmin(address)", ADMIN2, sender=OUTSIDER)
    assert refused == error("Unauthorized(address)", OUTSIDER)
    (log,) = registry.ask("setAdmin(address)", ADMIN2).logs
    assert log.topics[1:] == (word(ADMIN), word(ADMIN2), word(ADMIN))
    assert registry.do("admin()") == int.from_bytes(ADMIN2, "big")
    refused = registry.refusal("activate(bytes32)", FEATURE)
    assert refused == error("Unauthorized(address)", ADMIN)
    registry.do("activate(bytes32)", FEATURE, sender=ADMIN2)


def create(registry: Registry, kind: int, *members: bytes) -> int:
    signature = "createPolicyWithAccounts(address,uint8,address[])"
    return registry.do(signature, ADMIN, kind, members)


def verdicts(registry: Registry, policy: int, *accounts: bytes) -> list[int]:
    return [registry.do("isAuthorized(uint64,address)", policy, account) for account in accounts]


@pytest.mark.parametrize("fork", VERSIONS)
def test_lists_answer_for_their_members(fork: str) -> None:
    registry = Registry(fork)
    allows, blocks = create(registry, ALLOWLIST, ALICE), create(registry, BLOCKLIST, ALICE)
    assert (allows, blocks) == ((1 << 56) | 2, 3)
    assert verdicts(registry, allows, ALICE, BOB) == [1, 0]
    assert verdicts(registry, blocks, ALICE, BOB) == [0, 1]
    registry.do("updateAllowlist(uint64,bool,address[])", allows, True, [BOB])
    registry.do("updateBlocklist(uint64,bool,address[])", blocks, False, [ALICE])
    assert verdicts(registry, allows, ALICE, BOB) == [1, 1]
    assert verdicts(registry, blocks, ALICE, BOB) == [1, 1]


@pytest.mark.parametrize("fork", VERSIONS)
def test_policies_that_were_never_created_answer_as_empty_lists(fork: str) -> None:
    registry = Registry(fork)
    assert verdicts(registry, 0, ALICE) == verdicts(registry, 77, ALICE) == [1]
    assert verdicts(registry, ALWAYS_BLOCK, ALICE) == [0]
    assert verdicts(registry, (1 << 56) | 77, ALICE) == [0]
    assert registry.do("policyExists(uint64)", 77) == 0
    assert registry.do("policyExists(uint64)", ALWAYS_BLOCK) == 1


@pytest.mark.parametrize("fork", VERSIONS)
def test_changes_of_a_list_are_checked(fork: str) -> None:
    registry = Registry(fork)
    allows = create(registry, ALLOWLIST)
    update, other = (f"update{name}(uint64,bool,address[])" for name in ("Allowlist", "Blocklist"))
    assert registry.refusal(other, allows, True, []) == error("IncompatiblePolicyType()")
    assert registry.refusal(update, 999, True, []) == error("PolicyNotFound()")
    refused = registry.refusal(update, allows, True, [], sender=OUTSIDER)
    assert refused == error("Unauthorized()")
    large = registry.refusal(update, allows, True, [ALICE] * 65)
    assert large == error("BatchSizeTooLarge(uint256)", 64)
    zero = registry.refusal("createPolicy(address,uint8)", NOBODY, BLOCKLIST)
    assert zero == error("ZeroAddress()")


def test_without_the_feature_policies_are_read_only() -> None:
    registry = Registry("denim", features=())
    refused = registry.refusal("createPolicy(address,uint8)", ADMIN, BLOCKLIST)
    assert refused == error("FeatureNotActivated(bytes32)", keccak256(b"base.policy_registry"))
    assert verdicts(registry, 0, ALICE) == [1]


@pytest.mark.parametrize("fork", VERSIONS)
def test_an_admin_is_staged_and_finalized(fork: str) -> None:
    registry = Registry(fork)
    policy = create(registry, BLOCKLIST)
    finalize = "finalizeUpdateAdmin(uint64)"
    assert registry.refusal(finalize, policy) == error("NoPendingAdmin()")
    registry.do("stageUpdateAdmin(uint64,address)", policy, ADMIN2)
    assert registry.do("pendingPolicyAdmin(uint64)", policy) == int.from_bytes(ADMIN2, "big")
    assert registry.refusal(finalize, policy) == error("Unauthorized()")
    registry.do(finalize, policy, sender=ADMIN2)
    assert registry.do("policyAdmin(uint64)", policy) == int.from_bytes(ADMIN2, "big")
    assert registry.do("pendingPolicyAdmin(uint64)", policy) == 0
    registry.do("renounceAdmin(uint64)", policy, sender=ADMIN2)
    assert registry.do("policyAdmin(uint64)", policy) == 0
    assert registry.do("policyExists(uint64)", policy) == 1


# --- policies of policies -------------------------------------------------------------------------


def compose(registry: Registry, kind: int, *children: int) -> int:
    return registry.do("createCompositePolicy(address,uint8,uint64[])", ADMIN, kind, children)


@pytest.mark.parametrize("fork", ["cobalt", "denim"])
def test_a_policy_of_policies_follows_its_children(fork: str) -> None:
    registry = Registry(fork)
    x, y = create(registry, ALLOWLIST, ALICE, CAROL), create(registry, ALLOWLIST, BOB, CAROL)
    some, every = compose(registry, UNION, x, y), compose(registry, INTERSECTION, x, y)
    people = (ALICE, BOB, CAROL, OUTSIDER)
    assert verdicts(registry, some, *people) == [1, 1, 1, 0]
    assert verdicts(registry, every, *people) == [0, 0, 1, 0]
    registry.do("updateAllowlist(uint64,bool,address[])", x, True, [BOB])
    assert verdicts(registry, every, *people) == [0, 1, 1, 0]
    registry.do("updateComposite(uint64,uint64[])", every, [y, y, y])
    assert verdicts(registry, every, *people) == [0, 1, 1, 0]
    assert registry.do("compositePolicyChildIds(uint64)", every) == 32


@pytest.mark.parametrize("fork", ["cobalt", "denim"])
def test_children_are_checked(fork: str) -> None:
    registry = Registry(fork)
    x, y = create(registry, ALLOWLIST), create(registry, BLOCKLIST)
    some = compose(registry, UNION, x, y)
    signature = "createCompositePolicy(address,uint8,uint64[])"
    outside = error("ChildPoliciesOutsideOfRange()")
    for children in ([x], [x] * 5):
        assert registry.refusal(signature, ADMIN, UNION, children) == outside
    for wrong in (0, ALWAYS_BLOCK, some):
        refused = registry.refusal(signature, ADMIN, UNION, [x, wrong])
        assert refused == error("InvalidChildPolicy(uint64)", wrong)
    assert registry.refusal(signature, ADMIN, UNION, [x, 999]) == error("PolicyNotFound()")
    for kind in (BLOCKLIST, ALLOWLIST):
        refused = registry.refusal(signature, ADMIN, kind, [x, y])
        assert refused == error("IncompatiblePolicyType()")
    refused = registry.refusal("updateComposite(uint64,uint64[])", some, [x, y], sender=OUTSIDER)
    assert refused == error("Unauthorized()")
    assert registry.refusal("createPolicy(address,uint8)", ADMIN, UNION) == error(
        "IncompatiblePolicyType()"
    )


def test_an_inverted_policy_says_the_opposite_in_denim() -> None:
    registry = Registry("denim")
    allows = create(registry, ALLOWLIST, ALICE)
    inverted = registry.do("invertedPolicyId(uint64)", allows)
    assert inverted == allows | INVERTED
    assert verdicts(registry, inverted, ALICE, BOB) == [0, 1]
    assert registry.do("policyExists(uint64)", inverted) == 1
    assert verdicts(registry, 999 | INVERTED, ALICE) == [0]
    missing = registry.refusal("updateAllowlist(uint64,bool,address[])", inverted, True, [])
    assert missing == error("PolicyNotFound()")
    both = compose(registry, INTERSECTION, inverted, create(registry, BLOCKLIST))
    assert verdicts(registry, both, ALICE, BOB) == [0, 1]
    assert Registry("cobalt").ask("invertedPolicyId(uint64)", 2).status == "revert"


def test_the_counter_of_policies_ends_with_a_panic() -> None:
    registry = Registry("denim")
    create(registry, BLOCKLIST)
    registry.state.evm.set_storage(POLICY_REGISTRY, slot(POLICIES + 3), 2**56 - 1)
    refused = registry.refusal("createPolicy(address,uint8)", ADMIN, BLOCKLIST)
    assert refused == error("Panic(uint256)", 0x11)
