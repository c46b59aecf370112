"""Implements the ActivationRegistry and the PolicyRegistry."""

from __future__ import annotations

from typing import Any, ClassVar

from eth_hash.auto import keccak

from .abi import encode, error, panic, topic, word
from .journal import Frame, mapping

ACTIVATION = bytes.fromhex("8453000000000000000000000000000000000001")
POLICIES = bytes.fromhex("8453000000000000000000000000000000000002")
ACTIVATION_ROOT = 0x43EE1BBE25E988521CCCD8B2C8FBD38C8287EBFF8E074E825A70DFD3885CCE00
ROOT = 0x00503AEB06982FA1FE3151DC68F90B3946C55C449DFD447E49DCAECE71BA4A00
ADMINS = {
    8453: bytes.fromhex("cE3a3bEE7E72E2A24079f3c0Cb3b97740ED425A9"),
    84532: bytes.fromhex("5F43072722f59964d886CBb507F6a85ca0759D42"),
}
POLICY_FEATURE = keccak(b"base.policy_registry")
NOBODY = bytes(20)
EXISTS = 1 << 255
INVERTED = 1 << 63
ALWAYS_ALLOW, ALWAYS_BLOCK = 0, (1 << 56) | 1
BLOCKLIST, ALLOWLIST, UNION, INTERSECT = range(4)
LAST_COUNTER = 2**56 - 1


def from_address(address: bytes) -> int:
    return int.from_bytes(address, "big")


def to_address(value: int) -> bytes:
    return (value % 2**160).to_bytes(20, "big")


def key(address: bytes) -> bytes:
    return bytes(12) + address


def is_active(f: Frame, feature: bytes) -> bool:
    return f.load(ACTIVATION, mapping(ACTIVATION_ROOT, feature)) != 0


def require_feature(f: Frame, feature: bytes) -> None:
    if not is_active(f, feature):
        raise error("FeatureNotActivated(bytes32)", feature)


class Activation:
    def __init__(self, frame: Frame) -> None:
        self.f = frame

    def functions(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "isActivated(bytes32)": lambda feature: word(is_active(self.f, feature)),
            "checkActivated(bytes32)": self.check,
            "admin()": lambda: key(self.admin()),
            "activate(bytes32)": lambda feature: self.switch(feature, True),
            "deactivate(bytes32)": lambda feature: self.switch(feature, False),
        }
        if self.f.fork >= 2:
            found["setAdmin(address)"] = self.set_admin
        return found

    def check(self, feature: bytes) -> bytes:
        require_feature(self.f, feature)
        return b""

    def admin(self) -> bytes:
        constant = ADMINS.get(self.f.chain_id, NOBODY)
        if self.f.fork < 2:
            return constant
        stored = self.f.load(ACTIVATION, ACTIVATION_ROOT + 1)
        return to_address(stored) if stored else constant

    def refuse_static(self) -> None:
        if self.f.is_static:
            raise error("StaticCallNotAllowed()")

    def require_admin(self) -> None:
        if self.f.caller != self.admin():
            raise error("Unauthorized(address)", self.f.caller)

    def plant(self) -> None:
        if not self.f.journal.codes.get(ACTIVATION):
            self.f.plant(ACTIVATION)

    def switch(self, feature: bytes, on: bool) -> bytes:
        self.refuse_static()
        self.require_admin()
        if is_active(self.f, feature) == on:
            name = "AlreadyActivated(bytes32)" if on else "FeatureNotActivated(bytes32)"
            raise error(name, feature)
        if on:
            self.plant()
        self.f.store(ACTIVATION, mapping(ACTIVATION_ROOT, feature), int(on))
        event = "FeatureActivated" if on else "FeatureDeactivated"
        topics = (topic(f"{event}(bytes32,address)"), feature, key(self.f.caller))
        self.f.log(ACTIVATION, topics, b"")
        return b""

    def set_admin(self, new: bytes) -> bytes:
        self.refuse_static()
        if new == NOBODY:
            raise error("ZeroAdminAddress()")
        self.require_admin()
        self.plant()
        self.f.store(ACTIVATION, ACTIVATION_ROOT + 1, from_address(new))
        caller = key(self.f.caller)
        topics = (topic("AdminChanged(address,address,address)"), caller, key(new), caller)
        self.f.log(ACTIVATION, topics, b"")
        return b""


def entry(number: int, policy: int, *keys: bytes) -> int:
    return mapping(ROOT + number, word(policy), *keys)


def policy_word(f: Frame, policy: int) -> int:
    return f.load(POLICIES, entry(0, policy))


def kind_of(policy: int) -> int:
    return policy >> 56


def is_well_formed(f: Frame, policy: int) -> bool:
    return kind_of(policy) <= (ALLOWLIST if f.fork == 1 else INTERSECT)


def is_composite(policy: int) -> bool:
    return kind_of(policy) in (UNION, INTERSECT)


def exists(f: Frame, policy: int) -> bool:
    if f.fork >= 3:
        policy &= ~INVERTED
    if policy in (ALWAYS_ALLOW, ALWAYS_BLOCK):
        return True
    return is_well_formed(f, policy) and policy_word(f, policy) & EXISTS != 0


def children_of(f: Frame, policy: int) -> list[int]:
    slot = entry(4, policy)
    size = f.load(POLICIES, slot)
    data = int.from_bytes(keccak(slot.to_bytes(32, "big")), "big")
    words = [f.load(POLICIES, data + i) for i in range((size + 3) // 4)]
    return [words[i // 4] >> (64 * (i % 4)) & (2**64 - 1) for i in range(size)]


def is_authorized(f: Frame, policy: int, account: bytes) -> bool:
    if f.fork >= 3 and policy & INVERTED:
        base = policy ^ INVERTED
        return exists(f, base) and not is_authorized(f, base, account)
    if policy == ALWAYS_ALLOW:
        return True
    if policy == ALWAYS_BLOCK or not is_well_formed(f, policy):
        return False
    if is_composite(policy):
        children = children_of(f, policy)
        if kind_of(policy) == UNION:
            return any(is_authorized(f, child, account) for child in children)
        return all(is_authorized(f, child, account) for child in children)
    member = f.load(POLICIES, entry(1, policy, key(account))) != 0
    return member == (kind_of(policy) == ALLOWLIST)


class Policies:
    # Fork -> number of policy types that decode.
    ENUMS: ClassVar = {1: 2, 2: 4, 3: 4}

    def __init__(self, frame: Frame) -> None:
        self.f = frame

    def functions(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "createPolicy(address,uint8)": lambda admin, kind: self.create(admin, kind, None),
            "createPolicyWithAccounts(address,uint8,address[])": self.create,
            "stageUpdateAdmin(uint64,address)": self.stage,
            "finalizeUpdateAdmin(uint64)": self.finalize,
            "renounceAdmin(uint64)": self.renounce,
            "updateAllowlist(uint64,bool,address[])": lambda *a: self.update(ALLOWLIST, *a),
            "updateBlocklist(uint64,bool,address[])": lambda *a: self.update(BLOCKLIST, *a),
            "isAuthorized(uint64,address)": lambda i, a: word(is_authorized(self.f, i, a)),
            "policyExists(uint64)": lambda i: word(exists(self.f, i)),
            "policyAdmin(uint64)": self.admin,
            "pendingPolicyAdmin(uint64)": self.pending_admin,
        }
        if self.f.fork >= 2:
            found |= {
                "createCompositePolicy(address,uint8,uint64[])": self.create_composite,
                "updateComposite(uint64,uint64[])": self.update_composite,
                "MIN_COMPOSITE_CHILD_POLICIES()": lambda: word(2),
                "MAX_COMPOSITE_CHILD_POLICIES()": lambda: word(4),
                "compositePolicyChildIds(uint64)": self.child_ids,
            }
        if self.f.fork >= 3:
            found["invertedPolicyId(uint64)"] = lambda i: word(i ^ INVERTED)
        return found

    READS = frozenset(
        (
            "isAuthorized(uint64,address)",
            "policyExists(uint64)",
            "policyAdmin(uint64)",
            "pendingPolicyAdmin(uint64)",
            "MIN_COMPOSITE_CHILD_POLICIES()",
            "MAX_COMPOSITE_CHILD_POLICIES()",
            "compositePolicyChildIds(uint64)",
            "invertedPolicyId(uint64)",
        )
    )

    def stripped(self, policy: int) -> int:
        return policy & ~INVERTED if self.f.fork >= 3 else policy

    def admin(self, policy: int) -> bytes:
        return key(to_address(policy_word(self.f, self.stripped(policy))))

    def pending_admin(self, policy: int) -> bytes:
        policy = self.stripped(policy)
        if policy in (ALWAYS_ALLOW, ALWAYS_BLOCK):
            return word(0)
        return key(to_address(self.f.load(POLICIES, entry(2, policy))))

    def child_ids(self, policy: int) -> bytes:
        policy = self.stripped(policy)
        children = children_of(self.f, policy) if is_composite(policy) else []
        return encode(("uint64[]",), (children,))

    def log(self, signature: str, *topics: bytes, data: bytes = b"") -> None:
        self.f.log(POLICIES, (topic(signature), *topics), data)

    def allocate(self, admin: bytes, kind: int) -> int:
        f = self.f
        counter = f.load(POLICIES, ROOT + 3)
        if counter < 2:
            f.plant(POLICIES)
            f.store(POLICIES, entry(0, ALWAYS_ALLOW), EXISTS)
            f.store(POLICIES, entry(0, ALWAYS_BLOCK), EXISTS)
            f.store(POLICIES, ROOT + 3, 2)
            counter = 2
        if counter == LAST_COUNTER:
            raise panic(0x11)
        f.store(POLICIES, ROOT + 3, counter + 1)
        policy = kind << 56 | counter
        f.store(POLICIES, entry(0, policy), EXISTS | from_address(admin))
        created = "PolicyCreated(uint64,address,uint8)"
        self.log(created, word(policy), key(f.caller), data=word(kind))
        self.log("PolicyAdminUpdated(uint64,address,address)", word(policy), word(0), key(admin))
        return policy

    def create(self, admin: bytes, kind: int, accounts: list[bytes] | None) -> bytes:
        if admin == NOBODY:
            raise error("ZeroAddress()")
        if kind in (UNION, INTERSECT):
            raise error("IncompatiblePolicyType()")
        if accounts is not None and len(accounts) > 64:
            raise error("BatchSizeTooLarge(uint256)", 64)
        policy = self.allocate(admin, kind)
        if accounts is not None:
            self.set_members(policy, True, accounts)
        return word(policy)

    def set_members(self, policy: int, member: bool, accounts: list[bytes]) -> None:
        for account in accounts:
            self.f.store(POLICIES, entry(1, policy, key(account)), int(member))
        name = "Allowlist" if kind_of(policy) == ALLOWLIST else "Blocklist"
        self.log(
            f"{name}Updated(uint64,address,bool,address[])",
            word(policy),
            key(self.f.caller),
            data=encode(("bool", "address[]"), (member, accounts)),
        )

    def existing(self, policy: int) -> int:
        """Returns the storage word of a policy. Reverts with PolicyNotFound if there is none."""
        known = policy_word(self.f, policy)
        if not known & EXISTS:
            raise error("PolicyNotFound()")
        return known

    def require_admin(self, known: int) -> None:
        if to_address(known) != self.f.caller:
            raise error("Unauthorized()")

    def update(self, kind: int, policy: int, member: bool, accounts: list[bytes]) -> bytes:
        known = self.existing(policy)
        if kind_of(policy) != kind:
            raise error("IncompatiblePolicyType()")
        self.require_admin(known)
        if len(accounts) > 64:
            raise error("BatchSizeTooLarge(uint256)", 64)
        self.set_members(policy, member, accounts)
        return b""

    def check_children(self, children: list[int]) -> None:
        if not 2 <= len(children) <= 4:
            raise error("ChildPoliciesOutsideOfRange()")
        bases = [self.stripped(child) for child in children]
        for base in bases:
            if not policy_word(self.f, base) & EXISTS:
                raise error("PolicyNotFound()")
        for child, base in zip(children, bases, strict=True):
            if base in (ALWAYS_ALLOW, ALWAYS_BLOCK) or is_composite(base):
                raise error("InvalidChildPolicy(uint64)", child)

    def write_children(self, policy: int, children: list[int]) -> None:
        f, slot = self.f, entry(4, policy)
        data = int.from_bytes(keccak(slot.to_bytes(32, "big")), "big")
        before = (f.load(POLICIES, slot) + 3) // 4
        count = (len(children) + 3) // 4
        for index in range(count, before):
            f.store(POLICIES, data + index, 0)
        f.store(POLICIES, slot, len(children))
        for index in range(count):
            part = children[4 * index : 4 * index + 4]
            f.store(POLICIES, data + index, sum(c << 64 * i for i, c in enumerate(part)))

    def note_children(self, policy: int, children: list[int]) -> None:
        self.log(
            "CompositePolicyUpdated(uint64,address,uint64[])",
            word(policy),
            key(self.f.caller),
            data=encode(("uint64[]",), (children,)),
        )

    def create_composite(self, admin: bytes, kind: int, children: list[int]) -> bytes:
        if admin == NOBODY:
            raise error("ZeroAddress()")
        if kind not in (UNION, INTERSECT):
            raise error("IncompatiblePolicyType()")
        self.check_children(children)
        policy = self.allocate(admin, kind)
        self.write_children(policy, children)
        self.note_children(policy, children)
        return word(policy)

    def update_composite(self, policy: int, children: list[int]) -> bytes:
        known = self.existing(policy)
        if not is_composite(policy):
            raise error("IncompatiblePolicyType()")
        self.require_admin(known)
        self.check_children(children)
        self.write_children(policy, children)
        self.note_children(policy, children)
        return b""

    def stage(self, policy: int, new: bytes) -> bytes:
        self.require_admin(self.existing(policy))
        self.f.store(POLICIES, entry(2, policy), from_address(new))
        staged = "PolicyAdminStaged(uint64,address,address)"
        self.log(staged, word(policy), key(self.f.caller), key(new))
        return b""

    def finalize(self, policy: int) -> bytes:
        known = self.existing(policy)
        pending = self.f.load(POLICIES, entry(2, policy))
        if pending == 0:
            raise error("NoPendingAdmin()")
        if to_address(pending) != self.f.caller:
            raise error("Unauthorized()")
        self.f.store(POLICIES, entry(0, policy), EXISTS | pending)
        self.f.store(POLICIES, entry(2, policy), 0)
        updated = "PolicyAdminUpdated(uint64,address,address)"
        self.log(updated, word(policy), key(to_address(known)), key(self.f.caller))
        return b""

    def renounce(self, policy: int) -> bytes:
        self.require_admin(self.existing(policy))
        self.f.store(POLICIES, entry(0, policy), EXISTS)
        self.f.store(POLICIES, entry(2, policy), 0)
        updated = "PolicyAdminUpdated(uint64,address,address)"
        self.log(updated, word(policy), key(self.f.caller), word(0))
        return b""
