"""Tests Base's policy registry over JSON-RPC, alone and as used by a token."""

from tests.rpc.base.chain import (
    ALLOWLIST,
    ALWAYS_ALLOW,
    ALWAYS_BLOCK,
    BLOCKLIST,
    INTERSECT,
    POLICIES,
    UNION,
    WAD,
    Base,
    call_data,
    forbids,
    word_of,
)

ZERO = "0x" + "00" * 20
UPDATE_ALLOWLIST = "updateAllowlist(uint64,bool,address[])"
UPDATE_BLOCKLIST = "updateBlocklist(uint64,bool,address[])"
COMPOSE = "createCompositePolicy(address,uint8,uint64[])"
RECOMPOSE = "updateComposite(uint64,uint64[])"
CREATED = "PolicyCreated(uint64,address,uint8)"
UPDATED = "CompositePolicyUpdated(uint64,address,uint64[])"


def test_lists_and_their_admin(base: Base) -> None:
    owner, user, alice, bob = base.owner, base.user, base.alice, base.bob
    allowed, blocked = base.policy(ALLOWLIST), base.policy(BLOCKLIST, bob)
    assert base.read(POLICIES, "policyAdmin(uint64)", "address", allowed) == owner
    assert not base.allows(allowed, alice)
    base.send(owner, POLICIES, UPDATE_ALLOWLIST, allowed, True, [alice])
    assert base.allows(allowed, alice)
    assert not base.allows(blocked, bob)
    assert base.allows(blocked, alice)
    assert base.allows(ALWAYS_ALLOW, bob)
    assert not base.allows(ALWAYS_BLOCK, bob)

    pending, admin = "pendingPolicyAdmin(uint64)", "policyAdmin(uint64)"
    base.send(owner, POLICIES, "stageUpdateAdmin(uint64,address)", allowed, user)
    assert base.read(POLICIES, pending, "address", allowed) == user
    base.send(user, POLICIES, "finalizeUpdateAdmin(uint64)", allowed)
    assert base.read(POLICIES, admin, "address", allowed) == user
    assert base.read(POLICIES, pending, "address", allowed) == ZERO
    base.send(user, POLICIES, "renounceAdmin(uint64)", allowed)
    assert base.read(POLICIES, admin, "address", allowed) == ZERO
    assert base.read(POLICIES, "policyExists(uint64)", "bool", allowed)


def test_a_token_behind_an_allowlist(base: Base) -> None:
    token, owner, alice, bob = base.token(), base.owner, base.alice, base.bob
    policy = base.policy(ALLOWLIST, alice)
    for scope in ("TRANSFER_RECEIVER", "MINT_RECEIVER"):
        base.gate(token, scope, policy)
    base.send(owner, token, "mint(address,uint256)", alice, 100 * WAD)
    base.send(owner, POLICIES, UPDATE_ALLOWLIST, policy, True, [owner])
    base.send(owner, token, "mint(address,uint256)", owner, 10 * WAD)
    base.send(owner, token, "transfer(address,uint256)", alice, WAD)
    assert base.balance(token, alice) == 101 * WAD
    transfer = base.refused(owner, token, "transfer(address,uint256)", bob, WAD)
    assert transfer == forbids("TRANSFER_RECEIVER", policy)
    mint = base.refused(owner, token, "mint(address,uint256)", bob, WAD)
    assert mint == forbids("MINT_RECEIVER", policy)


def test_what_the_registry_refuses(base: Base) -> None:
    owner, user, bob = base.owner, base.user, base.bob
    allowed = base.policy(ALLOWLIST)
    wrong_kind = base.refused(owner, POLICIES, UPDATE_BLOCKLIST, allowed, True, [bob])
    assert wrong_kind == ("IncompatiblePolicyType",)
    foreign = base.refused(user, POLICIES, UPDATE_ALLOWLIST, allowed, True, [bob])
    assert foreign == ("Unauthorized",)
    create = "createPolicy(address,uint8)"
    assert base.refused(owner, POLICIES, create, ZERO, ALLOWLIST) == ("ZeroAddress",)
    none = base.refused(user, POLICIES, "finalizeUpdateAdmin(uint64)", allowed)
    assert none == ("NoPendingAdmin",)
    token, scope = base.token(), word_of("TRANSFER_SENDER_POLICY")
    unknown = base.refused(owner, token, "updatePolicy(bytes32,uint64)", scope, 999_999)
    assert unknown == ("PolicyNotFound", 999_999)
    if base.has_cobalt:
        union = base.refused(owner, POLICIES, create, owner, UNION)
        assert union == ("IncompatiblePolicyType",)
    else:
        assert base.rejects(POLICIES, call_data(create, owner, UNION))


def test_policies_of_policies(base: Base) -> None:
    if not base.has_cobalt:
        assert base.rejects(POLICIES, call_data(COMPOSE, base.owner, UNION, []))
        return
    owner, user, alice, bob, dave = base.owner, base.user, base.alice, base.bob, base.dave
    x, y = base.policy(ALLOWLIST, alice, dave), base.policy(ALLOWLIST, bob, dave)

    def composite(kind: int, *children: int) -> int:
        receipt = base.send(owner, POLICIES, COMPOSE, owner, kind, children)
        return receipt.word(CREATED, 1)

    def verdicts(policy: int) -> tuple[bool, ...]:
        return tuple(base.allows(policy, who) for who in (alice, bob, dave, user))

    union, intersection = composite(UNION, x, y), composite(INTERSECT, x, y)
    assert verdicts(union) == (True, True, True, False)
    assert verdicts(intersection) == (False, False, True, False)
    base.send(owner, POLICIES, UPDATE_ALLOWLIST, y, True, [alice])
    assert base.allows(intersection, alice)
    base.send(owner, POLICIES, UPDATE_ALLOWLIST, y, False, [alice])

    z = base.policy(BLOCKLIST, alice)
    receipt = base.send(owner, POLICIES, RECOMPOSE, intersection, [x, z])
    assert receipt.values(UPDATED) == ((x, z),)
    assert verdicts(intersection) == (False, False, True, False)

    for children in ([x], [x] * 5):
        count = base.refused(owner, POLICIES, COMPOSE, owner, UNION, children)
        assert count == ("ChildPoliciesOutsideOfRange",)
    for child in (ALWAYS_BLOCK, union):
        bad = base.refused(owner, POLICIES, COMPOSE, owner, UNION, [x, child])
        assert bad == ("InvalidChildPolicy", child)
    foreign = base.refused(user, POLICIES, RECOMPOSE, union, [x, y])
    assert foreign == ("Unauthorized",)

    token = base.token()
    base.send(owner, token, "mint(address,uint256)", owner, 10 * WAD)
    base.gate(token, "TRANSFER_RECEIVER", union)
    base.send(owner, token, "transfer(address,uint256)", bob, WAD)
    outside = base.refused(owner, token, "transfer(address,uint256)", user, WAD)
    assert outside == forbids("TRANSFER_RECEIVER", union)
