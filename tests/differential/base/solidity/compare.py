"""Compares random operations on a Base stablecoin with the same operations on a token in Solidity.

``python -m tests.differential.base.solidity.compare --operations 100000 [--seed 1]``. Every
operation, views included, must have equal output and logs. Gas is not compared.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from eth_abi import encode

from fastevm import EVM
from fastevm.core.primitives.keccak import keccak256
from fastevm.testing.native_calls import FACTORY, POLICY_REGISTRY, NativeState
from tests.unit.core.native.base.support import call_data, create_data, stablecoin_params

HERE: Final = Path(__file__).parent
ACTORS: Final = [bytes([0xA0 + number]) * 20 for number in range(4)]
ADMIN: Final = ACTORS[0]
NOBODY: Final = bytes(20)
FEATURES: Final = 4
GAS: Final = 10_000_000
FRESH: Final = 2_000  # operations until a new token is deployed
LARGE: Final = 2**128
HELP: Final = 0.3  # share of operations that make later operations more likely to succeed
ROLES: Final = [
    bytes(32),
    *(
        keccak256(f"{name}_ROLE".encode())
        for name in (
            "MINT", "BURN", "BURN_BLOCKED", "SEIZE", "PAUSE", "UNPAUSE", "METADATA", "OPERATOR"
        )
    ),
]  # fmt: skip
SCOPES: Final = [
    keccak256(f"{name}_POLICY".encode())
    for name in (
        "TRANSFER_SENDER", "TRANSFER_RECEIVER", "TRANSFER_EXECUTOR", "MINT_RECEIVER",
        "SEIZE_EXEMPT", "SEIZE_RECEIVER", "UNKNOWN",
    )
]  # fmt: skip
BUILT_IN: Final = [0, 1 << 56 | 1, 1, 5 << 56]
INVERTED: Final = 1 << 63

# Parameters by letter: a account, n amount, m memo, f features, r role, s scope, p policy, t type,
# l list of accounts, c list of policies, x text, b flag.
TOKEN_CALLS: Final = {
    "transfer(address,uint256)": "an",
    "transferWithMemo(address,uint256,bytes32)": "anm",
    "transferFrom(address,address,uint256)": "aan",
    "transferFromWithMemo(address,address,uint256,bytes32)": "aanm",
    "approve(address,uint256)": "an",
    "mint(address,uint256)": "an",
    "mintWithMemo(address,uint256,bytes32)": "anm",
    "burn(uint256)": "n",
    "burnWithMemo(uint256,bytes32)": "nm",
    "burnBlocked(address,uint256)": "an",
    "seizeWithMemo(address,address,uint256,bytes32)": "aanm",
    "pause(uint8[])": "f",
    "unpause(uint8[])": "f",
    "updateSupplyCap(uint256)": "n",
    "updateName(string)": "x",
    "updateSymbol(string)": "x",
    "updateContractURI(string)": "x",
    "grantRole(bytes32,address)": "ra",
    "revokeRole(bytes32,address)": "ra",
    "renounceRole(bytes32,address)": "ra",
    "renounceLastAdmin()": "",
    "setRoleAdmin(bytes32,bytes32)": "rr",
    "updatePolicy(bytes32,uint64)": "sp",
    "balanceOf(address)": "a",
    "allowance(address,address)": "aa",
    "totalSupply()": "",
    "supplyCap()": "",
    "isPaused(uint8)": "i",
    "hasRole(bytes32,address)": "ra",
    "getRoleAdmin(bytes32)": "r",
    "policyId(bytes32)": "s",
    "name()": "",
    "symbol()": "",
    "contractURI()": "",
}
REGISTRY_CALLS: Final = {
    "createPolicy(address,uint8)": "at",
    "createPolicyWithAccounts(address,uint8,address[])": "atl",
    "updateAllowlist(uint64,bool,address[])": "pbl",
    "updateBlocklist(uint64,bool,address[])": "pbl",
    "createCompositePolicy(address,uint8,uint64[])": "atc",
    "updateComposite(uint64,uint64[])": "pc",
    "stageUpdateAdmin(uint64,address)": "pa",
    "finalizeUpdateAdmin(uint64)": "p",
    "renounceAdmin(uint64)": "p",
    "isAuthorized(uint64,address)": "pa",
    "policyExists(uint64)": "p",
    "policyAdmin(uint64)": "p",
    "pendingPolicyAdmin(uint64)": "p",
}
COMMON: Final = tuple(list(TOKEN_CALLS)[:7])  # drawn half of the time
# After these operations most functions of the token fail, so they are drawn rarely.
RARE: Final = ("renounceLastAdmin()", "setRoleAdmin(bytes32,bytes32)")


class Outcome(NamedTuple):
    """The outcome of a call: success, output, and logs without the emitting contract's address."""

    success: bool
    output: bytes
    # per log: whether the token emitted it (not the registry), its topics and its data
    logs: tuple[tuple[bool, tuple[bytes, ...], bytes], ...]


class Side:
    """A machine with one of the two implementations: a token and a policy registry."""

    def __init__(self, evm: EVM, token: bytes, registry: bytes) -> None:
        self.evm, self.token, self.registry = evm, token, registry

    def call(self, sender: bytes, is_token: bool, data: bytes) -> Outcome:
        """Calls the token or the registry and commits the changes."""
        to = self.token if is_token else self.registry
        # The token's address differs between the implementations, so `MARK` stands for it in
        # results.
        done = self.evm.call(
            to, data.replace(MARK, self.token), sender=sender, gas=GAS, commit=True
        )
        logs = tuple(
            (log.address == self.token, tuple(map(self.marked, log.topics)), self.marked(log.data))
            for log in done.logs
        )
        return Outcome(done.success, self.marked(done.output), logs)

    def marked(self, data: bytes) -> bytes:
        """Returns data in which `MARK` replaces the token's address."""
        return bytes(data).replace(self.token, MARK)


# Stands for the token's address in calldata, output and logs.
MARK: Final = b"\x5e" * 20


def artifact(name: str) -> bytes:
    """Returns the creation code of a contract."""
    found = json.loads((HERE / "artifacts" / f"{name}.json").read_text())
    return bytes.fromhex(found["bytecode"][2:])


def native() -> Side:
    """Returns a machine with a stablecoin of Base's native token contract."""
    evm = NativeState("denim").evm
    data = create_data(1, stablecoin_params("Dollar", "USD", ADMIN), [])
    made = evm.call(FACTORY, data, sender=ADMIN, gas=GAS, commit=True)
    assert made.success, made
    return Side(evm, made.output[-20:], POLICY_REGISTRY)


def reference() -> Side:
    """Returns a machine with the token and the registry in Solidity."""
    evm = EVM("osaka")
    registry = evm.create(
        artifact("ReferencePolicies"), sender=ADMIN, gas=GAS, commit=True
    ).created_address
    terms = encode(["address", "address", "string", "string"], [registry, ADMIN, "Dollar", "USD"])
    made = evm.create(artifact("ReferenceToken") + terms, sender=ADMIN, gas=GAS, commit=True)
    assert registry is not None and made.created_address is not None, made
    return Side(evm, made.created_address, registry)


class Maker:
    """Draws random operations."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.policies: list[int] = []

    def argument(self, kind: str) -> Any:
        """Draws an argument of the given kind."""
        random = self.random
        match kind:
            case "a":
                return random.choice([*ACTORS] * 6 + [NOBODY, MARK])
            case "n":
                if random.random() < 0.8:
                    return random.randrange(200)
                return random.choice([0, random.randrange(10**6), LARGE - 1, LARGE, 2**256 - 1])
            case "m":
                return random.randbytes(32)
            case "f":
                return random.choices(range(FEATURES), k=random.randrange(3))
            case "i":
                return random.randrange(FEATURES)
            case "r":
                return random.choice(ROLES)
            case "s":
                return random.choice(SCOPES)
            case "p":
                policy = random.choice([*self.policies[-12:], *BUILT_IN])
                return policy ^ (INVERTED if random.random() < 0.1 else 0)
            case "t":
                return random.randrange(4)
            case "l":
                return random.choices([*ACTORS, NOBODY], k=random.randrange(4))
            case "c":
                return [self.argument("p") for _ in range(random.choice((0, 1, 2, 2, 3, 4, 5)))]
            case "x":
                return "ä" * random.randrange(40)
            case _:
                return random.random() < 0.5

    def listed(self, *kinds: int) -> int:
        """Draws a recently created policy of one of the kinds, or 0 if there is none."""
        return self.random.choice(
            [item for item in self.policies[-30:] if item >> 56 in kinds] or [0]
        )

    def help(self) -> tuple[bytes, bool, bytes, str]:
        """Returns an operation that makes later ones likelier to succeed, such as an unpause."""
        random, scope, some = self.random, self.random.choice(SCOPES), self.argument("l")
        is_token = random.random() < 0.75
        signature, values = random.choice(
            [
                ("unpause(uint8[])", [list(range(FEATURES))]),
                ("updatePolicy(bytes32,uint64)", [scope, 0]),
                ("updatePolicy(bytes32,uint64)", [scope, 0]),
                ("updatePolicy(bytes32,uint64)", [scope, self.listed(0)]),
                ("grantRole(bytes32,address)", [random.choice(ROLES), ADMIN]),
                ("updateSupplyCap(uint256)", [LARGE - 1]),
                ("mint(address,uint256)", [random.choice(ACTORS), 1_000]),
                ("mint(address,uint256)", [random.choice(ACTORS), 1_000]),
                ("burnBlocked(address,uint256)", [random.choice(ACTORS), 1]),
                ("seizeWithMemo(address,address,uint256,bytes32)",
                 [*random.sample(ACTORS, 2), 1, bytes(32)]),
            ]
            if is_token
            else [
                ("createPolicyWithAccounts(address,uint8,address[])",
                 [ADMIN, random.randrange(2), some]),
                ("updateAllowlist(uint64,bool,address[])", [self.listed(1), True, some]),
                ("updateBlocklist(uint64,bool,address[])", [self.listed(0), True, some]),
                ("createCompositePolicy(address,uint8,uint64[])",
                 [ADMIN, random.choice((2, 3)), [self.listed(0, 1), self.listed(0, 1)]]),
                ("updateComposite(uint64,uint64[])",
                 [self.listed(2, 3), [self.listed(0, 1), self.listed(0, 1)]]),
            ]
        )  # fmt: skip
        return ADMIN, is_token, call_data(signature, *values), signature

    def operation(self) -> tuple[bytes, bool, bytes, str]:
        """Returns sender, whether the target is the token (else the registry), data, signature."""
        random = self.random
        if random.random() < HELP:
            return self.help()
        is_token = random.random() < 0.75
        if is_token and random.random() < 0.5:
            signature = random.choice(COMMON)
        else:
            signature = random.choice(list(TOKEN_CALLS if is_token else REGISTRY_CALLS))
        if signature in RARE and random.random() < 0.95:
            signature = "grantRole(bytes32,address)"
        kinds = (TOKEN_CALLS if is_token else REGISTRY_CALLS)[signature]
        values = [self.argument(kind) for kind in kinds]
        sender = ADMIN if random.random() < 0.5 else random.choice(ACTORS)
        return sender, is_token, call_data(signature, *values), signature


def difference(seed: int, operations: int, successes: Counter[str]) -> str | None:
    """Runs operations on a fresh token. Returns the first difference.

    Adds to ``successes`` how often each function succeeded.
    """
    maker, sides = Maker(Random(seed)), (native(), reference())
    for role in ROLES[1:]:
        data = call_data("grantRole(bytes32,address)", role, ADMIN)
        for side in sides:
            assert side.call(ADMIN, True, data).success
    for number in range(operations):
        sender, is_token, data, signature = maker.operation()
        found, wanted = (side.call(sender, is_token, data) for side in sides)
        if found != wanted:
            return f"seed {seed}, operation {number}, {signature}: {found}, expected {wanted}"
        successes[signature] += found.success
        if found.success and signature.startswith("create"):
            maker.policies.append(int.from_bytes(found.output))
    return None


def main() -> int:
    """Runs the comparison and prints the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    done, successes = 0, Counter[str]()
    while done < given.operations:
        count = min(FRESH, given.operations - done)
        found = difference(given.seed + done, count, successes)
        if found is not None:
            print(found)
            return 1
        done += count
    print(f"{done} operations, {successes.total()} successful, no difference")
    print(", ".join(f"{name.partition('(')[0]} {count}" for name, count in successes.most_common()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
