"""Runs a development chain with Base's rules, and calls its contracts over JSON-RPC.

Functions and errors are given by their signatures, such as ``transfer(address,uint256)``.
"""

import secrets
from dataclasses import dataclass
from typing import Any

from eth_abi import decode, encode

from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.primitives.keccak import keccak256
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import RpcRefusal

FACTORY = "0xb20f000000000000000000000000000000000000"
POLICIES = "0x8453000000000000000000000000000000000002"
ASSET, STABLECOIN = 0, 1  # variants of a B20 token
WAD = 10**18
TRANSFER, MINT, BURN, SEIZE = range(4)  # token features that can be paused
BLOCKLIST, ALLOWLIST, UNION, INTERSECT = range(4)  # kinds of policies
ALWAYS_ALLOW, ALWAYS_BLOCK = 0, 1 << 56 | 1
ROLES = ("MINT", "BURN", "BURN_BLOCKED", "PAUSE", "UNPAUSE", "METADATA", "OPERATOR")
GAS = hex(3_000_000)
PANIC_OVERFLOW = ("Panic", 0x11)

ERRORS = [
    "AccessControlUnauthorizedAccount(address,bytes32)",
    "AccountNotBlocked(address)",
    "AccountNotSeizable(address)",
    "AnnouncementIdAlreadyUsed(string)",
    "ChildPoliciesOutsideOfRange()",
    "ContractPaused(uint8)",
    "EffectiveAtInPast(uint256)",
    "EffectiveAtTooFar(uint256)",
    "IncompatiblePolicyType()",
    "InsufficientAllowance(address,uint256,uint256)",
    "InsufficientBalance(address,uint256,uint256)",
    "InvalidChildPolicy(uint64)",
    "InvalidCurrency(string)",
    "InvalidDecimals(uint8)",
    "InvalidMultiplier()",
    "InvalidReceiver(address)",
    "InvalidSender(address)",
    "MissingRequiredField(string)",
    "NoPendingAdmin()",
    "NonPayable()",
    "Panic(uint256)",
    "PolicyForbids(bytes32,uint64)",
    "PolicyNotFound()",
    "PolicyNotFound(uint64)",
    "StaticCallNotAllowed()",
    "SupplyCapExceeded(uint256,uint256)",
    "TokenAlreadyExists(address)",
    "UIMultiplierUpdateDoesNotExist()",
    "UIMultiplierUpdateExists(uint256)",
    "Unauthorized()",
    "ZeroAddress()",
]


def types_of(signature: str) -> list[str]:
    """Returns the types of the parameters. Tuples are not supported."""
    inner = signature[signature.index("(") + 1 : -1]
    return inner.split(",") if inner else []


def call_data(signature: str, *values: Any) -> bytes:
    """Encodes a call of the function with this signature."""
    return keccak256(signature.encode())[:4] + encode(types_of(signature), values)


def word_of(name: str) -> bytes:
    """Returns the identifier of a role or of a policy scope."""
    return bytes(32) if name == "DEFAULT_ADMIN_ROLE" else keccak256(name.encode())


def topic_of(signature: str) -> str:
    """Returns the first topic of an event."""
    return hex_bytes(keccak256(signature.encode()))


BY_SELECTOR = {keccak256(text.encode())[:4]: text for text in ERRORS}


def error_of(output: bytes) -> tuple[Any, ...]:
    """Decodes revert data to the name and values of an error. Returns unknown data unchanged."""
    signature = BY_SELECTOR.get(output[:4])
    if signature is None:
        return (output,)
    return signature.partition("(")[0], *decode(types_of(signature), output[4:])


@dataclass
class Receipt:
    """The receipt of a successful transaction, with decoded logs."""

    fields: dict[str, Any]

    @property
    def events(self) -> list[str]:
        """Returns topic 0 of each log."""
        return [log["topics"][0] for log in self.fields["logs"]]

    def values(self, event: str) -> tuple[Any, ...]:
        """Decodes the data of the only log of an event, without indexed values."""
        (log,) = [log for log in self.fields["logs"] if log["topics"][0] == topic_of(event)]
        types = types_of(event)[len(log["topics"]) - 1 :]
        return decode(types, bytes.fromhex(log["data"][2:]))

    def word(self, event: str, topic: int) -> int:
        """Returns an indexed value of the only log of an event."""
        (log,) = [log for log in self.fields["logs"] if log["topics"][0] == topic_of(event)]
        return int(log["topics"][topic], 16)


class Base:
    """A node with the rules of a Base fork.

    ``owner`` and ``user`` can send; ``alice``, ``bob`` cannot.
    """

    def __init__(self, client: JsonRpcClient, fork: str) -> None:
        self.client = client
        self.fork = fork
        self.owner, self.user = client.call("eth_accounts")[:2]
        self.alice, self.bob, self.dave = (hex_bytes(secrets.token_bytes(20)) for _ in range(3))

    @property
    def has_cobalt(self) -> bool:
        return self.fork != "beryl"

    @property
    def has_denim(self) -> bool:
        return self.fork == "denim"

    def submit(
        self, sender: str, to: str | None, data: bytes, value: int = 0, gas: int | None = None
    ) -> Receipt:
        """Sends a transaction and waits for its receipt."""
        limit = GAS if gas is None else hex(gas)
        fields = {"from": sender, "input": hex_bytes(data), "gas": limit, "value": hex(value)}
        if to is not None:
            fields["to"] = to
        return Receipt(self.client.call("eth_sendTransactionSync", fields))

    def send(self, sender: str, to: str, signature: str, *values: Any) -> Receipt:
        """Sends a transaction that calls a function. Fails if it reverts."""
        receipt = self.submit(sender, to, call_data(signature, *values))
        assert receipt.fields["status"] == "0x1", (signature, values)
        return receipt

    def output(self, to: str, data: bytes, **fields: Any) -> bytes:
        """Returns the output of a call on the pending state. Raises RpcRefusal if it reverts."""
        call = {"to": to, "input": hex_bytes(data), **fields}
        return bytes.fromhex(self.client.call("eth_call", call, "pending")[2:])

    def read(self, to: str, signature: str, returns: str, *values: Any) -> Any:
        """Calls a view. Returns its only value, decoded as ``returns``."""
        (value,) = decode([returns], self.output(to, call_data(signature, *values)))
        return value

    def number(self, to: str, signature: str, *values: Any) -> int:
        """Calls a view that returns a number."""
        return int(self.read(to, signature, "uint256", *values))

    def revert(self, to: str, data: bytes, **fields: Any) -> tuple[Any, ...]:
        """Returns the decoded error of a call that must revert."""
        try:
            self.output(to, data, **fields)
        except RpcRefusal as refusal:
            assert refusal.code == 3 or "reverted" in refusal.message, refusal
            return error_of(bytes.fromhex((refusal.data or "0x")[2:]))
        raise AssertionError("the call did not revert")

    def refused(self, sender: str, to: str, signature: str, *values: Any) -> tuple[Any, ...]:
        """Returns the decoded error of a function call that must revert."""
        return self.revert(to, call_data(signature, *values), **{"from": sender})

    def rejects(self, to: str, data: bytes) -> bool:
        """Returns whether a call reverts because its data cannot be decoded.

        The revert data is the selector. Before Cobalt, an error text follows the selector if the
        function has arguments.
        """
        (output,) = self.revert(to, data, **{"from": self.owner})
        selector = data[:4] or bytes(4)
        if self.has_cobalt:
            return bool(output == selector)
        return bool(output.startswith(selector))

    def now(self) -> int:
        """Returns the timestamp of the latest block, in seconds."""
        return int(self.client.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)

    # --- tokens and policies ----------------------------------------------------------------------

    def create(
        self, variant: int, salt: bytes, *, decimals: int = 18, currency: str = "USD"
    ) -> str:
        """Creates a token and gives the owner all roles. Returns the token's address."""
        receipt = self.submit(self.owner, FACTORY, self.creation(variant, salt, decimals, currency))
        assert receipt.fields["status"] == "0x1"
        event = "B20Created(address,uint8,string,string,uint8,bytes)"
        return f"0x{receipt.word(event, 1):040x}"

    def creation(
        self, variant: int, salt: bytes, decimals: int = 18, currency: str = "USD"
    ) -> bytes:
        """Encodes the call that creates a token."""
        if variant == ASSET:
            form, last = "(uint8,string,string,address,uint8)", decimals
        else:
            form, last = "(uint8,string,string,address,string)", currency
        params = encode([form], [(1, "Journey", "JRN", self.owner, last)])
        roles = [*ROLES, "SEIZE"] if self.has_cobalt else ROLES
        if variant == STABLECOIN:
            roles = [role for role in roles if role != "OPERATOR"]
        calls = [
            call_data("grantRole(bytes32,address)", word_of(f"{role}_ROLE"), self.owner)
            for role in roles
        ]
        calls.append(call_data("updateSupplyCap(uint256)", 10**9 * WAD))
        return call_data("createB20(uint8,bytes32,bytes,bytes[])", variant, salt, params, calls)

    def token(self, variant: int = ASSET) -> str:
        """Creates a token with an unused salt."""
        return self.create(variant, secrets.token_bytes(32))

    def balance(self, token: str, holder: str) -> int:
        """Returns a balance."""
        return self.number(token, "balanceOf(address)", holder)

    def policy(self, kind: int, *accounts: str) -> int:
        """Creates a policy with these accounts. The owner is its admin. Returns its id."""
        signature = "createPolicyWithAccounts(address,uint8,address[])"
        receipt = self.send(self.owner, POLICIES, signature, self.owner, kind, accounts)
        return receipt.word("PolicyCreated(uint64,address,uint8)", 1)

    def gate(self, token: str, scope: str, policy: int) -> None:
        """Sets the token's policy for a scope. ``scope``: its name without ``_POLICY``."""
        name = word_of(f"{scope}_POLICY")
        self.send(self.owner, token, "updatePolicy(bytes32,uint64)", name, policy)

    def allows(self, policy: int, account: str) -> bool:
        """Returns whether a policy authorises an account."""
        return bool(self.read(POLICIES, "isAuthorized(uint64,address)", "bool", policy, account))


def forbids(scope: str, policy: int) -> tuple[Any, ...]:
    """Returns the expected error of a token whose policy does not authorise an account."""
    return "PolicyForbids", word_of(f"{scope}_POLICY"), policy


def unauthorised(account: str, role: str) -> tuple[Any, ...]:
    """Returns the expected error for an account that lacks a role."""
    return "AccessControlUnauthorizedAccount", account, word_of(f"{role}_ROLE")
