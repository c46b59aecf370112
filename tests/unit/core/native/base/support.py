"""Helpers for tests of Base's native tokens: call data, storage slots, and a record of writes."""

from __future__ import annotations

from typing import Any

from eth_abi import encode

from fastevm.core.primitives.keccak import keccak256
from fastevm.testing.native_calls import (
    ACTIVATION_REGISTRY,
    DEFAULT_GAS,
    FACTORY,
    MARKER,
    POLICY_REGISTRY,
    NativeState,
    Outcome,
)

__all__ = ["ACTIVATION_REGISTRY", "FACTORY", "MARKER", "POLICY_REGISTRY"]

VERSIONS = {"beryl": 1, "cobalt": 2, "denim": 3}
ALICE, BOB, CAROL = (bytes([byte]) * 20 for byte in (0xA1, 0xB0, 0xCA))
ADMIN, ADMIN2, OUTSIDER = (bytes([byte]) * 20 for byte in (0xAD, 0xA2, 0x0F))
CREATOR, SALT = b"\xc0" * 20, b"\x51" * 32
MEMO = b"\x77" * 32
NOBODY = bytes(20)
ASSET, STABLECOIN = 0, 1

ALLOWLIST_7 = (1 << 56) | 7
ALLOWLIST_8 = (1 << 56) | 8


def root(namespace: str) -> int:
    """Returns the first slot of a namespace (ERC-7201)."""
    inner = int.from_bytes(keccak256(namespace.encode()), "big") - 1
    return int.from_bytes(keccak256(inner.to_bytes(32, "big")), "big") & ~0xFF


TOKEN, ASSET_ROOT, STABLECOIN_ROOT = (
    root(name) for name in ("base.b20", "base.b20.asset", "base.b20.stablecoin")
)
POLICIES = root("base.policy_registry")


def word(value: int | bytes) -> bytes:
    return value.to_bytes(32, "big") if isinstance(value, int) else value.rjust(32, b"\0")


def slot(base: int, *keys: int | bytes) -> int:
    """Returns the slot of an element of a mapping at ``base``, or of nested mappings.

    A key is an address, an integer or a word of 32 bytes. Other bytes are a string key.
    """
    for key in keys:
        if isinstance(key, bytes) and len(key) not in (20, 32):
            base = int.from_bytes(keccak256(key + word(base)), "big")
        else:
            base = int.from_bytes(keccak256(word(key) + word(base)), "big")
    return base


def role(name: str) -> bytes:
    return bytes(32) if name == "DEFAULT_ADMIN_ROLE" else keccak256(name.encode())


def selector(signature: str) -> bytes:
    return keccak256(signature.encode())[:4]


def call_data(signature: str, *values: Any) -> bytes:
    types = split_types(signature[signature.index("(") + 1 : -1])
    return selector(signature) + encode(types, values)


def split_types(text: str) -> list[str]:
    return text.split(",") if text else []


def error(signature: str, *values: Any) -> bytes:
    return call_data(signature, *values)


PANIC = error("Panic(uint256)", 0x11)


def short_text(text: str) -> int:
    """Returns the storage word of a Solidity string of up to 31 bytes."""
    data = text.encode()
    return int.from_bytes(data.ljust(31, b"\0") + bytes([2 * len(data)]), "big")


def create_data(variant: int, params: bytes, calls: list[bytes], salt: bytes = SALT) -> bytes:
    return call_data("createB20(uint8,bytes32,bytes,bytes[])", variant, salt, params, calls)


def asset_params(
    name: str = "Base Asset", symbol: str = "bASSET", admin: bytes = NOBODY, decimals: int = 6,
    version: int = 1,
) -> bytes:  # fmt: skip
    types = ["(uint8,string,string,address,uint8)"]
    return encode(types, [(version, name, symbol, admin, decimals)])


def stablecoin_params(
    name: str = "USD Coin", symbol: str = "USDC", admin: bytes = NOBODY, currency: str = "USD",
    version: int = 1,
) -> bytes:  # fmt: skip
    types = ["(uint8,string,string,address,string)"]
    return encode(types, [(version, name, symbol, admin, currency)])


class Tokens(NativeState):
    """A state with one token. Records the slots that are written, and events after the creation."""

    def __init__(
        self, fork: str, variant: int = ASSET, params: bytes | None = None, **options: Any
    ):
        super().__init__(fork, **options)
        self.fork = fork
        if params is None:
            params = asset_params() if variant == ASSET else stablecoin_params()
        made = self.call(FACTORY, create_data(variant, params, []), sender=CREATOR)
        assert made.status == "success", made
        self.token = made.output[-20:]
        self.variant = variant
        self.written = set(self.storage()[self.token])
        if variant == ASSET:
            self.written.add(ASSET_ROOT + 1)
        self.events = b""

    def seed(self, key: int, value: int, *, counts: bool = True) -> None:
        """Writes a slot of the token. ``counts``: include the slot in the recorded slots."""
        self.evm.set_storage(self.token, key, value)
        if counts:
            self.written.add(key)

    def give_role(self, name: str, account: bytes, *, counts: bool = True) -> None:
        self.seed(slot(TOKEN + 6, role(name), account), 1, counts=counts)

    def fund(self, account: bytes, amount: int) -> None:
        self.seed(slot(TOKEN + 4, account), amount)
        self.seed(TOKEN + 3, amount)

    def authorize(self, policy: int, account: bytes, value: int = 1) -> None:
        """Makes the account a member of the policy."""
        self.evm.set_code(POLICY_REGISTRY, MARKER)
        self.evm.set_storage(POLICY_REGISTRY, slot(POLICIES + 1, policy, account), value)

    def ask(self, signature: str, *values: Any, sender: bytes = ALICE, **options: Any) -> Outcome:
        """Calls the token. Returns the result."""
        before = self.evm.state.storage_items(self.token)
        done = self.call(self.token, call_data(signature, *values), sender=sender, **options)
        after = self.evm.state.storage_items(self.token)
        self.written |= {k for k in before | after if before.get(k) != after.get(k)}
        for log in done.logs:
            if log.address == self.token:
                self.events += b"".join(log.topics) + log.data
        return done

    def do(self, signature: str, *values: Any, sender: bytes = ALICE, **options: Any) -> bytes:
        """Calls the token and returns the output. Fails if the call reverts."""
        done = self.ask(signature, *values, sender=sender, **options)
        assert done.status == "success", (signature, done)
        return done.output

    def refusal(self, signature: str, *values: Any, **options: Any) -> bytes:
        """Calls the token and returns the revert data. Fails if the call succeeds."""
        done = self.ask(signature, *values, **options)
        assert done.status == "revert", (signature, done)
        return done.output

    def digest(self, address: bytes) -> str:
        """Returns the hash of recorded events and slots, as if the token were at ``address``."""
        values = self.evm.state.storage_items(self.token)
        rows = sorted(address + word(key) + word(values.get(key, 0)) for key in self.written)
        return keccak256(self.events + b"".join(rows)).hex()


def least_gas(state: NativeState, to: bytes, data: bytes, sender: bytes) -> int:
    """Returns the least gas with which the call does not run out of gas."""
    low, high = 0, DEFAULT_GAS
    while low + 1 < high:
        middle = (low + high) // 2
        layer = state.evm.state
        done = state.call(to, data, sender=sender, gas=middle)
        state.evm.state = layer
        low, high = (middle, high) if done.status == "out of gas" else (low, middle)
    return high
