"""Implements B20 tokens: the core of assets and stablecoins, and the functions of assets."""

from __future__ import annotations

from typing import Any

from eth_hash.auto import keccak
from eth_keys import keys
from eth_keys.exceptions import BadSignature, ValidationError

from . import policies
from .abi import DecodeError, decode, encode, error, panic, selector, topic, types_of, word
from .journal import Frame, Revert, mapping

ROOT = 0xC78B71FEE795DDD74AFF64EA9B2474194C938C3196430E10BB5F01ED48434000
ASSET_ROOT = 0xFDC6D4552D1286ADE4D9FACDBF0FB50D2EC9B89A90E104F26FD277585E374B00
STABLECOIN_ROOT = 0x35827975A06CA0E9367EA3129B19441D45D0CA58E30B7693F09E73D0943D6200
(
    NAME,
    SYMBOL,
    URI,
    SUPPLY,
    BALANCES,
    ALLOWANCES,
    ROLES,
    ROLE_ADMINS,
    ADMIN_COUNT,
    POLICY_IDS,
    MINT_POLICY,
    PAUSED,
    CAP,
    NONCES,
    SEIZE_POLICIES,
) = (ROOT + i for i in range(15))
DECIMALS, MULTIPLIER, ANNOUNCEMENTS, METADATA, PENDING = (ASSET_ROOT + i for i in range(5))
WAD = 10**18
MOST = 2**256 - 1
MAX_CAP = 2**128 - 1
MAX_MULTIPLIER = 2**128 - 1
NOBODY = bytes(20)
DEFAULT_ADMIN = bytes(32)
TRANSFER, MINT, BURN, SEIZE = range(4)


def role(name: str) -> bytes:
    return keccak(f"{name}_ROLE".encode())


def scope(name: str) -> bytes:
    return keccak(f"{name}_POLICY".encode())


SENDER, RECEIVER = scope("TRANSFER_SENDER"), scope("TRANSFER_RECEIVER")
EXECUTOR, MINT_RECEIVER = scope("TRANSFER_EXECUTOR"), scope("MINT_RECEIVER")
SEIZE_EXEMPT, SEIZE_RECEIVER = scope("SEIZE_EXEMPT"), scope("SEIZE_RECEIVER")
SCOPE_SLOTS = {
    SENDER: (POLICY_IDS, 0),
    RECEIVER: (POLICY_IDS, 64),
    EXECUTOR: (POLICY_IDS, 128),
    MINT_RECEIVER: (MINT_POLICY, 0),
    SEIZE_EXEMPT: (SEIZE_POLICIES, 0),
    SEIZE_RECEIVER: (SEIZE_POLICIES, 64),
}
ROLE_NAMES = ("MINT", "BURN", "BURN_BLOCKED", "PAUSE", "UNPAUSE", "METADATA")
SCOPE_NAMES = ("TRANSFER_SENDER", "TRANSFER_RECEIVER", "TRANSFER_EXECUTOR", "MINT_RECEIVER")
ID_MASK = 2**64 - 1
DOMAIN_TYPE = keccak(
    b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
)
PERMIT_TYPE = keccak(
    b"Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"
)
INTERFACES = ("01ffc9a7", "a60bf13d", "4bd27648", "d890fd71", "57854fc3")
YES = word(1)


def key(address: bytes) -> bytes:
    return bytes(12) + address


def words_of(data: bytes) -> int:
    return (len(data) + 31) // 32


class Undispatched(Revert):
    """The contract has no function with this selector, or the arguments do not decode."""


class Token:
    def __init__(self, frame: Frame, address: bytes, *, privileged: bool = False) -> None:
        self.f, self.address, self.privileged = frame, address, privileged
        self.is_asset = address[10] == 0

    def load(self, slot: int) -> int:
        return self.f.load(self.address, slot)

    def store(self, slot: int, value: int) -> None:
        self.f.store(self.address, slot, value)

    def log(self, signature: str, *topics: bytes, data: bytes = b"") -> None:
        self.f.log(self.address, (topic(signature), *topics), data)

    def caller_key(self) -> bytes:
        return key(self.f.caller)

    def read_text(self, slot: int) -> bytes:
        header = self.load(slot)
        if not header & 1:
            return header.to_bytes(32, "big")[: header % 256 // 2]
        size = header // 2
        data = int.from_bytes(keccak(word(slot)), "big")
        chunks = [word(self.load(data + i)) for i in range((size + 31) // 32)]
        return b"".join(chunks)[:size]

    def clear_tail(self, slot: int, count: int) -> None:
        header = self.load(slot)
        if header & 1:
            data = int.from_bytes(keccak(word(slot)), "big")
            for i in range(count, (header // 2 + 31) // 32):
                self.store(data + i, 0)

    def write_text(self, slot: int, text: bytes) -> None:
        chunks = 0 if len(text) <= 31 else words_of(text)
        if self.f.fork >= 2:
            self.clear_tail(slot, chunks)
        if not chunks:
            inline = text + bytes(31 - len(text)) + bytes([2 * len(text)])
            self.store(slot, int.from_bytes(inline, "big"))
            return
        self.store(slot, 2 * len(text) + 1)
        data = int.from_bytes(keccak(word(slot)), "big")
        for i in range(chunks):
            chunk = text[32 * i : 32 * i + 32]
            self.store(data + i, int.from_bytes(chunk + bytes(32 - len(chunk)), "big"))

    def delete_text(self, slot: int) -> None:
        header = self.load(slot)
        chunks = (header // 2 + 31) // 32 if header & 1 else 0
        data = int.from_bytes(keccak(word(slot)), "big")
        for i in range(chunks):
            self.store(data + i, 0)
        self.store(slot, 0)

    def require_active(self, feature: int) -> None:
        if self.load(PAUSED) >> feature & 1:
            raise error("ContractPaused(uint8)", feature)

    def holds(self, name: bytes, account: bytes) -> bool:
        return self.load(mapping(ROLES, name, key(account))) != 0

    def require_role(self, name: bytes) -> None:
        if not self.holds(name, self.f.caller):
            raise error("AccessControlUnauthorizedAccount(address,bytes32)", self.f.caller, name)

    def unless_privileged(self, name: bytes) -> None:
        if not self.privileged:
            self.require_role(name)

    def policy(self, of: bytes, ids: int | None = None) -> int:
        slot, shift = SCOPE_SLOTS[of]
        return (self.load(slot) if ids is None else ids) >> shift & ID_MASK

    def require_policy(self, of: bytes, account: bytes, ids: int | None = None) -> None:
        policy = self.policy(of, ids)
        if not policies.is_authorized(self.f, policy, account):
            raise error("PolicyForbids(bytes32,uint64)", of, policy)

    def check_receiver(self, to: bytes) -> None:
        if to == NOBODY or (self.f.fork >= 3 and to == self.address):
            raise error("InvalidReceiver(address)", to)

    def add(self, slot: int, amount: int) -> None:
        value = self.load(slot) + amount
        if value > MOST:
            raise panic(0x11)
        self.store(slot, value)

    def debit(self, account: bytes, amount: int) -> None:
        slot = mapping(BALANCES, key(account))
        balance = self.load(slot)
        if balance < amount:
            found = (account, balance, amount)
            raise error("InsufficientBalance(address,uint256,uint256)", *found)
        self.store(slot, balance - amount)

    def note_transfer(self, sender: bytes, to: bytes, amount: int) -> None:
        signature = "Transfer(address,address,uint256)"
        self.log(signature, key(sender), key(to), data=word(amount))

    def move(self, sender: bytes, to: bytes, amount: int) -> None:
        self.debit(sender, amount)
        self.add(mapping(BALANCES, key(to)), amount)
        self.note_transfer(sender, to, amount)

    def check_ends(self, sender: bytes, to: bytes) -> None:
        self.check_receiver(to)
        if sender == NOBODY:
            raise error("InvalidSender(address)", sender)

    def transfer_policies(self, sender: bytes, to: bytes, ids: int | None) -> None:
        if self.privileged:
            return
        caller = self.f.caller
        if self.f.fork >= 3:
            assert ids is not None
            self.require_policy(EXECUTOR, caller, ids)
            same = self.policy(EXECUTOR, ids) == self.policy(SENDER, ids)
            if not (caller == sender and same):
                self.require_policy(SENDER, sender, ids)
        else:
            self.require_policy(SENDER, sender, ids)
        self.require_policy(RECEIVER, to, ids)

    def shared_ids(self) -> int | None:
        return self.load(POLICY_IDS) if self.f.fork >= 2 and not self.privileged else None

    def transfer(self, to: bytes, amount: int) -> bytes:
        self.require_active(TRANSFER)
        sender = self.f.caller
        self.check_ends(sender, to)
        self.transfer_policies(sender, to, self.shared_ids())
        self.move(sender, to, amount)
        return YES

    def transfer_from(self, sender: bytes, to: bytes, amount: int) -> bytes:
        self.require_active(TRANSFER)
        caller = self.f.caller
        self.check_ends(sender, to)
        slot = mapping(ALLOWANCES, key(sender), key(caller))
        allowance = self.load(slot)
        if allowance != MOST and allowance < amount:
            found = (caller, allowance, amount)
            raise error("InsufficientAllowance(address,uint256,uint256)", *found)
        ids = self.shared_ids()
        if self.f.fork < 3 and caller != sender and not self.privileged:
            self.require_policy(EXECUTOR, caller, ids)
        self.transfer_policies(sender, to, ids)
        self.move(sender, to, amount)
        if allowance != MOST:
            self.store(slot, allowance - amount)
        return YES

    def memo(self, memo: bytes) -> None:
        self.log("Memo(address,bytes32)", self.caller_key(), memo)

    def transfer_with_memo(self, to: bytes, amount: int, memo: bytes) -> bytes:
        self.transfer(to, amount)
        self.memo(memo)
        return YES

    def transfer_from_with_memo(self, sender: bytes, to: bytes, amount: int, memo: bytes) -> bytes:
        self.transfer_from(sender, to, amount)
        self.memo(memo)
        return YES

    def approve(self, spender: bytes, amount: int) -> bytes:
        self.approve_for(self.f.caller, spender, amount)
        return YES

    def approve_for(self, owner: bytes, spender: bytes, amount: int) -> None:
        if owner == NOBODY:
            raise error("InvalidApprover(address)", owner)
        if spender == NOBODY:
            raise error("InvalidSpender(address)", spender)
        self.store(mapping(ALLOWANCES, key(owner), key(spender)), amount)
        signature = "Approval(address,address,uint256)"
        self.log(signature, key(owner), key(spender), data=word(amount))

    def mint(self, to: bytes, amount: int) -> bytes:
        self.require_active(MINT)
        self.unless_privileged(role("MINT"))
        self.mint_checked(to, amount)
        return b""

    def mint_checked(self, to: bytes, amount: int) -> None:
        self.check_receiver(to)
        self.require_policy(MINT_RECEIVER, to)
        supply, cap = self.load(SUPPLY), self.load(CAP)
        if supply + amount > MOST:
            raise panic(0x11)
        if supply + amount > cap:
            raise error("SupplyCapExceeded(uint256,uint256)", cap, supply + amount)
        self.store(SUPPLY, supply + amount)
        self.add(mapping(BALANCES, key(to)), amount)
        self.note_transfer(NOBODY, to, amount)

    def mint_with_memo(self, to: bytes, amount: int, memo: bytes) -> bytes:
        self.mint(to, amount)
        self.memo(memo)
        return b""

    def destroy(self, account: bytes, amount: int) -> None:
        self.debit(account, amount)
        supply = self.load(SUPPLY)
        if supply < amount:
            raise panic(0x11)
        self.store(SUPPLY, supply - amount)
        self.note_transfer(account, NOBODY, amount)

    def burn(self, amount: int) -> bytes:
        self.require_active(BURN)
        self.require_role(role("BURN"))
        self.destroy(self.f.caller, amount)
        return b""

    def burn_with_memo(self, amount: int, memo: bytes) -> bytes:
        self.burn(amount)
        self.memo(memo)
        return b""

    def burn_blocked(self, account: bytes, amount: int) -> bytes:
        self.require_active(BURN)
        self.unless_privileged(role("BURN_BLOCKED"))
        if policies.is_authorized(self.f, self.policy(SENDER), account):
            raise error("AccountNotBlocked(address)", account)
        self.destroy(account, amount)
        signature = "BurnedBlocked(address,address,uint256)"
        self.log(signature, self.caller_key(), key(account), data=word(amount))
        return b""

    def seize(self, sender: bytes, to: bytes, amount: int, memo: bytes) -> bytes:
        self.require_active(SEIZE)
        self.require_role(role("SEIZE"))
        self.check_ends(sender, to)
        if sender == to:
            raise error("InvalidReceiver(address)", to)
        if policies.is_authorized(self.f, self.policy(SEIZE_EXEMPT), sender):
            raise error("AccountNotSeizable(address)", sender)
        self.require_policy(SEIZE_RECEIVER, to)
        self.move(sender, to, amount)
        self.memo(memo)
        signature = "Seized(address,address,address,uint256)"
        self.log(signature, self.caller_key(), key(sender), key(to), data=word(amount))
        return b""

    def set_paused(self, features: list[int], on: bool) -> bytes:
        self.unless_privileged(role("PAUSE" if on else "UNPAUSE"))
        if not features:
            raise error("EmptyFeatureSet()")
        mask = self.load(PAUSED)
        for feature in features:
            mask = mask | 1 << feature if on else mask & ~(1 << feature)
        self.store(PAUSED, mask)
        signature = f"{'Paused' if on else 'Unpaused'}(address,uint8[])"
        self.log(signature, self.caller_key(), data=encode(("uint8[]",), (features,)))
        return b""

    def paused_features(self) -> bytes:
        mask = self.load(PAUSED)
        count = 3 if self.f.fork < 2 else 4
        return encode(("uint8[]",), ([i for i in range(count) if mask >> i & 1],))

    def update_cap(self, cap: int) -> bytes:
        self.unless_privileged(DEFAULT_ADMIN)
        supply = self.load(SUPPLY)
        if cap < supply or cap > MAX_CAP:
            raise error("InvalidSupplyCap(uint256,uint256)", supply, cap)
        old = self.load(CAP)
        self.store(CAP, cap)
        signature = "SupplyCapUpdated(address,uint256,uint256)"
        self.log(signature, self.caller_key(), data=word(old) + word(cap))
        return b""

    def update_name(self, name: bytes) -> bytes:
        self.unless_privileged(role("METADATA"))
        self.write_text(NAME, name)
        data = encode(("string",), (name,))
        self.log("NameUpdated(address,string)", self.caller_key(), data=data)
        self.log("EIP712DomainChanged()")
        return b""

    def update_symbol(self, symbol: bytes) -> bytes:
        self.unless_privileged(role("METADATA"))
        self.write_text(SYMBOL, symbol)
        data = encode(("string",), (symbol,))
        self.log("SymbolUpdated(address,string)", self.caller_key(), data=data)
        return b""

    def update_uri(self, uri: bytes) -> bytes:
        self.unless_privileged(role("METADATA"))
        self.write_text(URI, uri)
        self.log("ContractURIUpdated()")
        return b""

    def policy_of_scope(self, of: bytes) -> bytes:
        self.check_scope(of)
        return word(self.policy(of))

    def check_scope(self, of: bytes) -> None:
        known = list(SCOPE_SLOTS)[: 4 if self.f.fork < 2 else 6]
        if of not in known:
            raise error("UnsupportedPolicyType(bytes32)", of)

    def update_policy(self, of: bytes, new: int) -> bytes:
        self.unless_privileged(DEFAULT_ADMIN)
        self.check_scope(of)
        slot, shift = SCOPE_SLOTS[of]
        reads_first = not self.is_asset and self.f.fork < 2
        old = self.policy(of) if reads_first else 0
        if not policies.exists(self.f, new):
            raise error("PolicyNotFound(uint64)", new)
        if not reads_first:
            old = self.policy(of)
        ids = self.load(slot) & ~(ID_MASK << shift)
        self.store(slot, ids | new << shift)
        data = word(old) + word(new)
        self.log("PolicyUpdated(bytes32,uint64,uint64)", of, data=data)
        return b""

    def require_admins(self) -> None:
        if self.load(ADMIN_COUNT) == 0:
            found = (self.f.caller, DEFAULT_ADMIN)
            raise error("AccessControlUnauthorizedAccount(address,bytes32)", *found)

    def role_admin(self, name: bytes) -> bytes:
        return word(self.load(mapping(ROLE_ADMINS, name)))

    def grant(self, name: bytes, account: bytes) -> bytes:
        if name == DEFAULT_ADMIN or not self.privileged:
            self.require_admins()
        if not self.privileged:
            self.require_role(self.role_admin(name))
        self.give(name, account)
        return b""

    def give(self, name: bytes, account: bytes) -> None:
        if self.holds(name, account):
            return
        self.store(mapping(ROLES, name, key(account)), 1)
        if name == DEFAULT_ADMIN:
            self.store(ADMIN_COUNT, self.load(ADMIN_COUNT) + 1)
        signature = "RoleGranted(bytes32,address,address)"
        self.log(signature, name, key(account), self.caller_key())

    def revoke(self, name: bytes, account: bytes) -> bytes:
        if not self.privileged:
            self.require_admins()
            self.require_role(self.role_admin(name))
        self.keep_last_admin(name, account)
        self.take(name, account)
        return b""

    def keep_last_admin(self, name: bytes, account: bytes) -> None:
        if name == DEFAULT_ADMIN and self.holds(name, account) and self.load(ADMIN_COUNT) == 1:
            raise error("LastAdminCannotRenounce()")

    def take(self, name: bytes, account: bytes) -> None:
        if not self.holds(name, account):
            return
        self.store(mapping(ROLES, name, key(account)), 0)
        if name == DEFAULT_ADMIN:
            self.store(ADMIN_COUNT, self.load(ADMIN_COUNT) - 1)
        signature = "RoleRevoked(bytes32,address,address)"
        self.log(signature, name, key(account), self.caller_key())

    def renounce(self, name: bytes, confirmation: bytes) -> bytes:
        if confirmation != self.f.caller:
            raise error("AccessControlBadConfirmation()")
        self.keep_last_admin(name, self.f.caller)
        self.take(name, self.f.caller)
        return b""

    def renounce_last_admin(self) -> bytes:
        self.require_role(DEFAULT_ADMIN)
        if self.load(ADMIN_COUNT) != 1:
            raise error("NotSoleAdmin()")
        self.take(DEFAULT_ADMIN, self.f.caller)
        self.log("LastAdminRenounced(address)", self.caller_key())
        return b""

    def set_role_admin(self, name: bytes, new: bytes) -> bytes:
        previous = self.role_admin(name)
        if not self.privileged:
            self.require_admins()
            self.require_role(previous)
        self.store(mapping(ROLE_ADMINS, name), int.from_bytes(new, "big"))
        self.log("RoleAdminChanged(bytes32,bytes32,bytes32)", name, previous, new)
        return b""

    def meter(self, amount: int) -> None:
        if self.f.fork >= 2:
            self.f.charge(amount)

    def domain(self) -> bytes:
        name = self.read_text(NAME)
        self.meter(30 + 6 * words_of(name))
        self.meter(36)
        self.meter(60)
        parts = (DOMAIN_TYPE, keccak(name), keccak(b"1"), word(self.f.chain_id))
        return keccak(b"".join(parts) + key(self.address))

    def eip712_domain(self) -> bytes:
        name = self.read_text(NAME)
        kinds = ("bytes1", "string", "string", "uint256", "address", "bytes32", "uint256[]")
        values = (b"\x0f", name, b"1", self.f.chain_id, self.address, bytes(32), [])
        return encode(kinds, values)

    def permit(
        self, owner: bytes, spender: bytes, value: int, deadline: int, v: int, r: bytes, s: bytes
    ) -> bytes:
        if self.f.now > deadline:
            raise error("ExpiredSignature(uint256)", deadline)
        domain = self.domain()
        slot = mapping(NONCES, key(owner))
        nonce = self.load(slot)
        self.meter(66)
        terms = (PERMIT_TYPE, key(owner), key(spender), word(value), word(nonce), word(deadline))
        self.meter(48)
        digest = keccak(b"\x19\x01" + domain + keccak(b"".join(terms)))
        self.meter(3000)
        signer = recovered(digest, v, int.from_bytes(r, "big"), int.from_bytes(s, "big"))
        if signer != owner or signer == NOBODY:
            raise error("InvalidSigner(address,address)", signer, owner)
        self.store(slot, self.load(slot) + 1)
        self.approve_for(owner, spender, value)
        return b""

    def pending(self) -> tuple[int, int]:
        """Returns the scheduled multiplier and when it takes effect. Reads the slot twice."""
        value = self.load(PENDING) & MAX_MULTIPLIER
        return value, self.load(PENDING) >> 128 & ID_MASK

    def effective_at(self) -> int:
        return self.load(PENDING) >> 128 & ID_MASK

    def effective(self) -> int:
        if self.f.fork >= 2:
            at = self.effective_at()
            if at != 0 and self.f.now >= at:
                return self.load(PENDING) & MAX_MULTIPLIER
        return self.load(MULTIPLIER) or WAD

    def new_multiplier(self) -> int:
        if self.effective_at() > self.f.now:
            return self.load(PENDING) & MAX_MULTIPLIER
        return self.effective()

    def scaled(self, raw: int) -> int:
        return self.product(raw, self.effective()) // WAD

    def raw(self, scaled: int) -> int:
        multiplier = self.effective()
        return self.product(scaled, WAD) // multiplier

    def product(self, a: int, b: int) -> int:
        if a * b > MOST:
            raise panic(0x11)
        return a * b

    def clear_pending(self) -> None:
        self.store(PENDING, self.load(PENDING) >> 192 << 192)

    def update_multiplier(self, new: int) -> bytes:
        self.unless_privileged(role("OPERATOR"))
        if new == 0 or (self.f.fork >= 2 and new > MAX_MULTIPLIER):
            raise error("InvalidMultiplier()")
        if self.f.fork < 2:
            self.store(MULTIPLIER, new)
            self.log("MultiplierUpdated(uint256)", data=word(new))
            return b""
        value, at = self.pending()
        old = self.effective()
        self.store(MULTIPLIER, new)
        if at != 0:
            self.clear_pending()
        if at > self.f.now:
            signature = "UIMultiplierUpdateCancelled(uint256,uint256)"
            self.log(signature, data=word(value) + word(at))
        self.log("MultiplierUpdated(uint256)", data=word(new))
        self.note_ui(old, new, self.f.now)
        return b""

    def note_ui(self, old: int, new: int, at: int) -> None:
        data = word(old) + word(new) + word(at)
        self.log("UIMultiplierUpdated(uint256,uint256,uint256)", data=data)

    def update_ui_multiplier(self, new: int, at: int) -> bytes:
        self.unless_privileged(role("OPERATOR"))
        if new == 0 or new > MAX_MULTIPLIER:
            raise error("InvalidMultiplier()")
        if at <= self.f.now:
            raise error("EffectiveAtInPast(uint256)", at)
        if at > ID_MASK:
            raise error("EffectiveAtTooFar(uint256)", at)
        time = self.effective_at()
        if time > self.f.now:
            raise error("UIMultiplierUpdateExists(uint256)", time)
        if time != 0:
            self.store(MULTIPLIER, self.load(PENDING) & MAX_MULTIPLIER)
        old = self.load(MULTIPLIER) or WAD
        self.store(PENDING, self.load(PENDING) >> 192 << 192 | at << 128 | new)
        self.note_ui(old, new, at)
        return b""

    def cancel_ui_update(self) -> bytes:
        self.unless_privileged(role("OPERATOR"))
        value, at = self.pending()
        if at <= self.f.now:
            raise error("UIMultiplierUpdateDoesNotExist()")
        self.clear_pending()
        signature = "UIMultiplierUpdateCancelled(uint256,uint256)"
        self.log(signature, data=word(value) + word(at))
        return b""

    def extra_metadata(self, name: bytes) -> bytes:
        return encode(("string",), (self.read_text(mapping(METADATA, name)),))

    def update_metadata(self, name: bytes, value: bytes) -> bytes:
        self.unless_privileged(role("METADATA"))
        if not name:
            raise error("InvalidMetadataKey()")
        slot = mapping(METADATA, name)
        if value:
            self.write_text(slot, value)
        else:
            self.delete_text(slot)
        data = encode(("string", "string"), (name, value))
        self.log("ExtraMetadataUpdated(string,string)", data=data)
        return b""

    def batch_mint(self, accounts: list[bytes], amounts: list[int]) -> bytes:
        self.require_active(MINT)
        self.unless_privileged(role("MINT"))
        if len(accounts) != len(amounts):
            raise error("LengthMismatch(uint256,uint256)", len(accounts), len(amounts))
        if not accounts:
            raise error("EmptyBatch()")
        for account, amount in zip(accounts, amounts, strict=True):
            self.require_active(MINT)
            self.mint_checked(account, amount)
        return b""

    def announce(
        self, calls: list[bytes], identifier: bytes, description: bytes, uri: bytes
    ) -> bytes:
        self.unless_privileged(role("OPERATOR"))
        slot = mapping(ANNOUNCEMENTS, identifier)
        if self.load(slot) != 0:
            raise error("AnnouncementIdAlreadyUsed(string)", identifier)
        self.store(slot, 1)
        texts = encode(("string", "string", "string"), (identifier, description, uri))
        self.log("Announcement(address,string,string,string)", self.caller_key(), data=texts)
        for inner in calls:
            self.announced(inner)
        self.log("EndAnnouncement(string)", data=encode(("string",), (identifier,)))
        return b""

    def announced(self, inner: bytes) -> None:
        if len(inner) < 4:
            raise error("InternalCallMalformed(bytes)", inner)
        if inner[:4] == selector("announce(bytes[],string,string,string)"):
            raise error("AnnouncementInProgress()")
        try:
            self.dispatch(inner)
        except Revert as refused:
            if refused.output[:4] == selector("Panic(uint256)"):
                raise
            raise error("InternalCallFailed(bytes)", inner) from None

    def functions(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "name()": lambda: encode(("string",), (self.read_text(NAME),)),
            "symbol()": lambda: encode(("string",), (self.read_text(SYMBOL),)),
            "contractURI()": lambda: encode(("string",), (self.read_text(URI),)),
            "decimals()": lambda: word((self.load(DECIMALS) or 6) if self.is_asset else 6),
            "totalSupply()": lambda: word(self.load(SUPPLY)),
            "balanceOf(address)": lambda a: word(self.load(mapping(BALANCES, key(a)))),
            "allowance(address,address)": lambda a, b: word(
                self.load(mapping(ALLOWANCES, key(a), key(b)))
            ),
            "supplyCap()": lambda: word(self.load(CAP)),
            "nonces(address)": lambda a: word(self.load(mapping(NONCES, key(a)))),
            "hasRole(bytes32,address)": lambda r, a: word(self.holds(r, a)),
            "getRoleAdmin(bytes32)": self.role_admin,
            "isPaused(uint8)": lambda n: word(self.load(PAUSED) >> n & 1),
            "pausedFeatures()": self.paused_features,
            "policyId(bytes32)": self.policy_of_scope,
            "DOMAIN_SEPARATOR()": self.domain,
            "eip712Domain()": self.eip712_domain,
            "transfer(address,uint256)": self.transfer,
            "transferFrom(address,address,uint256)": self.transfer_from,
            "approve(address,uint256)": self.approve,
            "transferWithMemo(address,uint256,bytes32)": self.transfer_with_memo,
            "transferFromWithMemo(address,address,uint256,bytes32)": self.transfer_from_with_memo,
            "mint(address,uint256)": self.mint,
            "mintWithMemo(address,uint256,bytes32)": self.mint_with_memo,
            "burn(uint256)": self.burn,
            "burnWithMemo(uint256,bytes32)": self.burn_with_memo,
            "burnBlocked(address,uint256)": self.burn_blocked,
            "grantRole(bytes32,address)": self.grant,
            "revokeRole(bytes32,address)": self.revoke,
            "renounceRole(bytes32,address)": self.renounce,
            "renounceLastAdmin()": self.renounce_last_admin,
            "setRoleAdmin(bytes32,bytes32)": self.set_role_admin,
            "pause(uint8[])": lambda features: self.set_paused(features, True),
            "unpause(uint8[])": lambda features: self.set_paused(features, False),
            "updatePolicy(bytes32,uint64)": self.update_policy,
            "updateSupplyCap(uint256)": self.update_cap,
            "updateName(string)": self.update_name,
            "updateSymbol(string)": self.update_symbol,
            "updateContractURI(string)": self.update_uri,
            "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)": self.permit,
            "DEFAULT_ADMIN_ROLE()": lambda: DEFAULT_ADMIN,
        }
        roles, scopes = ROLE_NAMES, SCOPE_NAMES
        if self.f.fork >= 2:
            roles, scopes = (*roles, "SEIZE"), (*scopes, "SEIZE_EXEMPT", "SEIZE_RECEIVER")
            found["seizeWithMemo(address,address,uint256,bytes32)"] = self.seize
        found |= {f"{name}_ROLE()": lambda name=name: role(name) for name in roles}
        found |= {f"{name}_POLICY()": lambda name=name: scope(name) for name in scopes}
        if self.is_asset:
            found |= self.asset_functions()
        else:
            found["currency()"] = lambda: encode(("string",), (self.read_text(STABLECOIN_ROOT),))
        return found

    def asset_functions(self) -> dict[str, Any]:
        def balance(account: bytes) -> int:
            return self.load(mapping(BALANCES, key(account)))

        found: dict[str, Any] = {
            "OPERATOR_ROLE()": lambda: role("OPERATOR"),
            "WAD_PRECISION()": lambda: word(WAD),
            "announce(bytes[],string,string,string)": self.announce,
            "isAnnouncementIdUsed(string)": lambda i: word(
                self.load(mapping(ANNOUNCEMENTS, i)) != 0
            ),
            "multiplier()": lambda: word(self.effective()),
            "toScaledBalance(uint256)": lambda n: word(self.scaled(n)),
            "toRawBalance(uint256)": lambda n: word(self.raw(n)),
            "scaledBalanceOf(address)": lambda a: word(self.scaled(balance(a))),
            "updateMultiplier(uint256)": self.update_multiplier,
            "batchMint(address[],uint256[])": self.batch_mint,
            "extraMetadata(string)": self.extra_metadata,
            "updateExtraMetadata(string,string)": self.update_metadata,
        }
        if self.f.fork >= 2:
            found |= {
                "uiMultiplier()": lambda: word(self.effective()),
                "newUIMultiplier()": lambda: word(self.new_multiplier()),
                "effectiveAt()": lambda: word(self.effective_at()),
                "balanceOfUI(address)": lambda a: word(self.scaled(balance(a))),
                "totalSupplyUI()": lambda: word(self.scaled(self.load(SUPPLY))),
                "toUIAmount(uint256)": lambda n: word(self.scaled(n)),
                "fromUIAmount(uint256)": lambda n: word(self.raw(n)),
                "MAX_UI_MULTIPLIER()": lambda: word(MAX_MULTIPLIER),
                "updateUIMultiplier(uint256,uint256)": self.update_ui_multiplier,
                "cancelUIMultiplierUpdate()": self.cancel_ui_update,
                "supportsInterface(bytes4)": lambda i: word(i.hex() in INTERFACES),
            }
        return found

    def enums(self, signature: str) -> int | None:
        """Returns how many values a function's enum arguments may have; None without an enum."""
        if signature.split("(")[0] in ("pause", "unpause", "isPaused"):
            return 3 if self.f.fork < 2 else 4
        return None

    def dispatch(self, data: bytes) -> bytes:
        return run(self.functions(), self.enums, data, self.f.fork)


def run(functions: dict[str, Any], enums: Any, data: bytes, fork: int) -> bytes:
    """Finds the function by its selector, decodes the arguments and runs the function."""
    if len(data) < 4:
        raise Undispatched(bytes(4))
    name = data[:4]
    signature = next((s for s in functions if selector(s) == name), None)
    if signature is None:
        raise Undispatched(name)
    try:
        values = decode(types_of(signature), data[4:], enums(signature))
    except DecodeError as fault:
        raise Undispatched(name if fork >= 2 else name + str(fault).encode()) from None
    output: bytes = functions[signature](*values)
    return output


def recovered(digest: bytes, v: int, r: int, s: int) -> bytes:
    """Returns the signer of a signature, or the zero address."""
    if v not in (27, 28):
        return NOBODY
    try:
        signature = keys.Signature(vrs=(v - 27, r, s))
        return signature.recover_public_key_from_msg_hash(digest).to_canonical_address()
    except (BadSignature, ValidationError, ValueError):
        return NOBODY
