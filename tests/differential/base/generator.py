"""Makes random calls to Base's native contracts: valid, malformed, and with too little gas."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from .specification import factory, policies, token
from .specification.abi import encode, selector, types_of, word
from .specification.journal import Frame, Journal

PEOPLE = tuple(bytes([letter]) * 20 for letter in (0xA1, 0xB0, 0xCA, 0xAD, 0x0F))
NOBODY = bytes(20)
PLENTY = 5_000_000
MOST = 2**256 - 1
TEXTS = (b"", b"USD", b"usd", b"EUR", b"a name of more than thirty-one bytes", b"x" * 31, b"y" * 70,
         "é".encode(), b"\xff", b"id-1", b"id-2", b"category")  # fmt: skip
AMOUNTS = (0, 1, 10, 40, 100, 10**18, 2 * 10**18, 2**64, 2**128 - 1, 2**128, 2**255, MOST)
ROLES = (
    bytes(32),
    *(token.role(n) for n in (*token.ROLE_NAMES, "SEIZE", "OPERATOR")),
    b"\x01" * 32,
)
SCOPES = (*token.SCOPE_SLOTS, b"\x02" * 32)
SALTS = tuple(bytes([n]) * 32 for n in range(4))


class Call(NamedTuple):
    """A call to a native contract. If ``gas`` is None, the comparison chooses the gas."""

    to: bytes
    data: bytes
    sender: bytes
    value: int
    static: bool
    gas: int | None


class Generator:
    """Makes the calls of a sequence under one fork. Tracks the tokens and policies made so far."""

    def __init__(self, random: Random, fork: int, now: int) -> None:
        self.random, self.fork, self.now = random, fork, now
        self.tokens = [
            factory.PREFIX + bytes([variant]) + bytes(8) + b"\x01" for variant in (0, 1)
        ]  # token addresses that are never deployed
        frame = Frame(Journal(), fork, 8453, now, PEOPLE[0], 0)
        self.surfaces = {
            factory.FACTORY: list(factory.Factory(frame).functions()),
            policies.POLICIES: list(policies.Policies(frame).functions()),
            policies.ACTIVATION: list(policies.Activation(frame).functions()),
        }
        self.token_surfaces = [
            list(token.Token(frame, address).functions()) for address in self.tokens
        ]

    def person(self) -> bytes:
        return self.random.choice((*PEOPLE, *PEOPLE, NOBODY, self.random.choice(self.tokens)))

    def amount(self) -> int:
        pick = self.random.random()
        if pick < 0.6:
            return self.random.choice(AMOUNTS)
        return self.random.randrange(200) if pick < 0.9 else self.random.getrandbits(256)

    def policy(self) -> int:
        kind = self.random.choice((0, 0, 1, 1, 2, 3, 4, 128))
        found = kind << 56 | self.random.choice((0, 1, 2, 2, 3, 4, 5, 6, 7))
        if self.random.random() < 0.15:
            found ^= policies.INVERTED
        return found % 2**64

    def value(self, kind: str, signature: str) -> Any:
        random = self.random
        if kind.endswith("[]"):
            size = random.choice((0, 1, 2, 2, 3, 4, 5, 65) if random.random() < 0.2 else (1, 2, 3))
            return [self.value(kind[:-2], signature) for _ in range(size)]
        if kind == "address":
            return self.person()
        if kind == "bool":
            return random.random() < 0.5
        if kind == "uint64":
            return self.policy()
        if kind == "uint8":
            return random.choice((0, 1, 1, 2, 3, 4, 27, 28, 255))
        if kind == "string":
            return random.choice(TEXTS)
        if kind == "bytes":
            return self.inner_call()
        if kind == "bytes4":
            return bytes.fromhex(random.choice((*token.INTERFACES, "ffffffff")))
        if kind == "bytes32":
            if "Policy" in signature or "policy" in signature:
                return random.choice(SCOPES)
            if "ole" in signature:
                return random.choice(ROLES)
            if "ctivate" in signature:
                return random.choice((*factory.FEATURES, policies.POLICY_FEATURE, b"\x09" * 32))
            return random.choice(SALTS)
        if signature.startswith("updateUIMultiplier"):
            return (
                self.now + random.choice((-1, 0, 1, 50, 2**64))
                if random.random() < 0.6
                else (self.amount())
            )
        if "deadline" in signature or signature.startswith("permit"):
            return random.choice((0, self.now, MOST, 500))
        return self.amount()

    def inner_call(self) -> bytes:
        if self.random.random() < 0.1:
            return bytes.fromhex(self.random.choice(("", "01", "deadbeef", "595135dd")))
        return self.calldata(self.random.choice(self.token_surfaces[0]))

    def parameters(self, variant: int) -> bytes:
        """Returns the encoded parameters of a token, sometimes truncated."""
        random = self.random
        version = 1 if random.random() < 0.95 else 2
        last: Any = (
            random.choice((6, 18, 5, 19, 8, 8)) if variant % 2 == 0 else random.choice(TEXTS[:4])
        )
        values = (version, random.choice(TEXTS), random.choice(TEXTS), self.person(), last)
        data = word(32) + encode(factory.PARAMETERS[variant % 2], values)
        return data if random.random() < 0.95 else data[: random.randrange(len(data))]

    def calldata(self, signature: str) -> bytes:
        kinds = types_of(signature)
        values = [self.value(kind, signature) for kind in kinds]
        if signature == factory.CREATE:
            values[0] = self.random.choice((0, 0, 1, 1, 2))
            values[2] = self.parameters(values[0])
            values[3] = values[3][:3]
        return selector(signature) + encode(kinds, values)

    def mutated(self, data: bytes) -> bytes:
        random, changed = self.random, bytearray(data)
        how = random.randrange(4)
        if how == 0:
            return data[: random.randrange(len(data) + 1)]
        if how == 1:
            return data + bytes(random.randrange(1, 40))
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
        if how == 3 and len(changed) > 36:
            changed[random.randrange(4, len(changed))] = 0xFF
        return bytes(changed)

    def call(self) -> Call:
        random = self.random
        pick = random.random()
        if pick < 0.12:
            to = factory.FACTORY
        elif pick < 0.32:
            to = policies.POLICIES
        elif pick < 0.36:
            to = policies.ACTIVATION
        else:
            to = random.choice(self.tokens)
        surface = self.surfaces.get(to) or self.token_surfaces[to[10]]
        data = self.calldata(random.choice(surface))
        if random.random() < 0.05:
            data = self.mutated(data)
        is_static = random.random() < 0.05
        value = int(random.random() < 0.02 and not is_static)
        gas = None if random.random() < 0.15 else PLENTY
        return Call(to, data, random.choice(PEOPLE), value, is_static, gas)

    def opening(self) -> list[Call]:
        """Returns calls that create policies and two tokens. The first account has every role."""
        owner = PEOPLE[0]
        kinds = (policies.ALLOWLIST, policies.BLOCKLIST, policies.ALLOWLIST)
        made = [
            Call(
                policies.POLICIES,
                selector("createPolicyWithAccounts(address,uint8,address[])")
                + encode(("address", "uint8", "address[]"), (owner, kind, list(PEOPLE[:2]))),
                owner, 0, False, PLENTY,
            )
            for kind in kinds
        ]  # fmt: skip
        grants = [
            selector("grantRole(bytes32,address)") + encode(("bytes32", "address"), (role, owner))
            for role in ROLES[1:]
        ]
        mint = selector("mint(address,uint256)") + encode(("address", "uint256"), (owner, 10**6))
        for variant in (0, 1):
            terms = (1, b"A Token", b"TOK", owner, 6 if variant == 0 else b"USD")
            params = word(32) + encode(factory.PARAMETERS[variant], terms)
            data = selector(factory.CREATE) + encode(
                types_of(factory.CREATE), (variant, b"\x55" * 32, params, [*grants, mint])
            )
            made.append(Call(factory.FACTORY, data, owner, 0, False, PLENTY))
        return made


CONTRACTS = tuple(bytes([0xC0, n]) + bytes(17) + b"\x01" for n in range(3))
DELEGATED = tuple(bytes([0xD0, n]) + bytes(17) + b"\x01" for n in range(3))
KINDS = (0xF1, 0xF1, 0xF1, 0xFA, 0xF4, 0xF2)


def push(value: int, size: int = 2) -> bytes:
    return bytes([0x5F + size]) + value.to_bytes(size, "big")


class Assembler:
    """Writes a program of calls. The calldata follow the code, from where CODECOPY copies them."""

    def __init__(self, generator: Generator, others: tuple[bytes, ...]) -> None:
        self.generator, self.random, self.others = generator, generator.random, others
        self.steps: list[bytes | tuple[bytes, bytes, bytes]] = []

    def target(self) -> bytes:
        random = self.random
        if random.random() < 0.25:
            # Without `others` this is the last contract. It must not call itself through a
            # delegation.
            delegated = DELEGATED if self.others else DELEGATED[:2]
            return random.choice((*self.others, *delegated, *PEOPLE[:1]))
        return self.generator.call().to

    def wanted(self) -> Call:
        """Returns a call. In Beryl it is never createB20, whose error texts are unknown."""
        wanted = self.generator.call()
        while self.generator.fork == 1 and wanted.data[:4] == selector(factory.CREATE):
            wanted = self.generator.call()
        return wanted

    def add_call(self) -> None:
        random = self.random
        wanted, kind = self.wanted(), random.choice(KINDS)
        to = wanted.to if random.random() < 0.75 else self.target()
        gas = b"\x5a" if random.random() < 0.7 else push(random.randrange(60_000), 3)
        value = push(int(random.random() < 0.1), 1) if kind in (0xF1, 0xF2) else b""
        out = push(random.choice((0, 0, 32)), 1) + push(0, 1)
        ending = (
            # Stores success, the size of the return data and the return data in memory.
            push(0x40, 1) + b"\x52"
            + b"\x3d" + push(0x60, 1) + b"\x52"
            + b"\x3d" + push(0, 1) + push(0x80, 1) + b"\x3e"
        )  # fmt: skip
        before = out + push(len(wanted.data)) + push(0x400)
        self.steps.append(
            (wanted.data, before, value + push_address(to) + gas + bytes([kind]) + ending)
        )

    def add_other(self) -> None:
        random = self.random
        pick = random.randrange(5)
        if pick == 0:
            self.steps.append(push(random.randrange(3), 1) + push(random.randrange(2), 1) + b"\x55")
        elif pick == 1:
            self.steps.append(push(random.randrange(2), 1) + b"\x54\x50")
        elif pick == 2:
            self.steps.append(
                push_address(self.target())
                + random.choice((b"\x3b", b"\x3f"))
                + push(0x20, 1)
                + b"\x52"
            )
        elif pick == 3:
            self.steps.append(push(0x60, 1) + push(0, 1) + b"\xa0")
        else:
            self.steps.append(b"\x5a\x50")

    def assemble(self) -> bytes:
        random = self.random
        for _ in range(random.randrange(1, 6)):
            self.add_call() if random.random() < 0.7 else self.add_other()
        ending = random.choice((
            push(0x100) + push(0, 1) + b"\xf3", push(0x100) + push(0, 1) + b"\xf3",
            push(0x60, 1) + push(0, 1) + b"\xfd", b"\x00", b"\xfe",
        ))  # fmt: skip
        sizes = [len(s) if isinstance(s, bytes) else 10 + len(s[1]) + len(s[2]) for s in self.steps]
        at = sum(sizes) + len(ending)
        code, data = b"", b""
        for step in self.steps:
            if isinstance(step, bytes):
                code += step
                continue
            payload, before, after = step
            code += (
                push(len(payload)) + push(at + len(data)) + push(0x400) + b"\x39" + before + after
            )
            data += payload
        return code + ending + data


def push_address(address: bytes) -> bytes:
    return b"\x73" + address
