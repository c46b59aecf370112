"""Makes random cases: contracts, and transactions that run them."""

import json
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from fastevm.bench.programs.assembler import Assembly
from fastevm.core.crypto.secp256k1 import public_key_address
from fastevm.core.execution.transaction.transaction import sign_authorization
from fastevm.core.primitives import rlp
from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.spec.forks import fork_named
from fastevm.core.spec.schedule import schedule_for

from . import words
from .precompile_inputs import PRECOMPILES, precompile_input
from .programs import Scene, initcode, program

FORKS = (
    "Frontier", "Homestead", "TangerineWhistle", "SpuriousDragon", "Byzantium", "Constantinople",
    "Petersburg", "Istanbul", "Berlin", "London", "Paris", "Shanghai", "Cancun", "Prague", "Osaka",
    "BPO1", "BPO2",
)  # fmt: skip
# Amsterdam is separate because not every peer supports it.
ALL_FORKS = (*FORKS, "Amsterdam")
ETHER = 10**18
KEYS = tuple(bytes(31) + bytes([number]) for number in range(1, 5))
PEOPLE = tuple(public_key_address(key) for key in KEYS)
CONTRACTS = tuple(bytes([0xC0 + number]) * 20 for number in range(6))
NOBODY = b"\xee" * 20
COINBASE = b"\xcb" * 20
MOST_GAS = 400_000
DEPLOYMENT_GAS = 6_000_000

Fields = dict[str, Any]


@dataclass
class Case:
    """A block environment, a state, and transactions to run one after another.

    Values are as in JSON: bytes as 0x-prefixed hex, numbers as integers, storage keys as hex.
    """

    fork: str
    block: Fields
    pre: dict[str, Fields]
    transactions: list[Fields]

    def dumps(self, **options: Any) -> str:
        """Returns the case as JSON."""
        return json.dumps(asdict(self), **options)

    @staticmethod
    def loads(text: str) -> "Case":
        """Reads JSON that `dumps` wrote, or a corpus file."""
        fields = json.loads(text)
        return Case(**{name: fields[name] for name in Case.__annotations__})

    @property
    def programs(self) -> int:
        """Returns the number of programs: codes of accounts and init codes."""
        codes = sum(1 for account in self.pre.values() if account["code"] != "0x")
        return codes + sum(1 for transaction in self.transactions if transaction["to"] is None)


def made_by(creator: bytes, nonce: int) -> bytes:
    """Returns the address of a contract created by CREATE."""
    encoded = nonce.to_bytes((nonce.bit_length() + 7) // 8, "big")
    return keccak256(rlp.encode([creator, encoded]))[12:]


class CaseMaker:
    """Makes one case for one fork."""

    def __init__(self, random: Random, fork: str) -> None:
        self.random = random
        self.fork = fork
        self.rules = schedule_for(fork).parameters
        self.era = ALL_FORKS.index(fork)
        self.pre: dict[bytes, Fields] = {}
        self.nonces: dict[bytes, int] = {}
        self.contracts = CONTRACTS[: random.randrange(2, len(CONTRACTS) + 1)]
        self.number = random.choice((1, 300, 1000, 70_000))

    def since(self, fork: str) -> bool:
        """Returns whether the case's fork is ``fork`` or a later fork."""
        return self.era >= FORKS.index(fork_named(fork).name)

    def make(self) -> Case:
        self.block = self.make_block()
        for address in self.contracts:
            self.nonces[address] = self.random.choice((0, 1, 1, 1, 5, 2**64 - 2, 2**64 - 1))
        self.make_scenes()
        self.make_people()
        self.make_contracts()
        self.make_others()
        count = self.random.choice((1, 1, 2, 3))
        transactions = [self.make_transaction() for _ in range(count)]
        pre = {hex_bytes(address): self.pre[address] for address in sorted(self.pre)}
        return Case(self.fork, self.block, pre, transactions)

    # --- the block ---

    def make_block(self) -> Fields:
        random = self.random
        return {
            "chain_id": 1,
            "number": self.number,
            "timestamp": random.randrange(1, 1 << 33),
            "gas_limit": 30_000_000,
            "coinbase": hex_bytes(
                random.choice((COINBASE, COINBASE, self.contracts[0], PEOPLE[1]))
            ),
            "difficulty": 0 if self.since("Paris") else random.randrange(1, 1 << 60),
            "prev_randao": words.any_word(random) if self.since("Paris") else 0,
            "base_fee": random.choice((0, 7, 1000)) if self.since("London") else 0,
            "excess_blob_gas": random.choice((0, 1 << 22, 1 << 26)) if self.since("Cancun") else 0,
        }

    # --- the state ---

    def make_scenes(self) -> None:
        """Chooses the addresses and init codes that programs may use.

        Init codes use the same addresses, but create no contracts themselves.
        """
        births = [made_by(address, self.nonces[address]) for address in self.contracts]
        births = self.random.sample(births, 2)
        addresses = (*self.contracts, *self.contracts, *PEOPLE[:3], *births, NOBODY, COINBASE)
        inner = Scene(self.fork, addresses, number=self.number)
        codes = tuple(initcode(self.random, inner) for _ in range(self.random.randrange(1, 4)))
        self.scene = Scene(self.fork, addresses, codes, self.number)
        self.births = births

    def make_people(self) -> None:
        for person in PEOPLE:
            self.nonces[person] = self.random.choice((0, 0, 1, 300))
            balance = ETHER if person == PEOPLE[0] else self.random.choice((0, ETHER, 10**6))
            if self.nonces[person] == balance == 0:
                continue
            self.put(person, balance=balance, nonce=self.nonces[person])
            if self.since("Prague") and self.random.random() < 0.3:
                self.pre[person]["code"] = hex_bytes(b"\xef\x01\x00" + self.delegate())

    def delegate(self) -> bytes:
        """Returns an account to delegate to: contract, user, precompile, or the zero address."""
        others = (*PEOPLE, NOBODY, bytes(19) + b"\x04", bytes(20))
        return self.random.choice((*self.contracts, *self.contracts, *others))

    def make_contracts(self) -> None:
        for address in self.contracts:
            self.put(
                address,
                balance=self.random.choice((0, 1, 1000, ETHER)),
                nonce=self.nonces[address],
                code=program(self.random, self.scene),
                storage=self.some_storage(),
            )

    def some_storage(self) -> Fields:
        if self.random.random() < 0.4:
            return {}
        slots = range(self.random.randrange(words.SLOTS + 1))
        return {hex(slot): words.any_word(self.random) or 1 for slot in slots}

    def make_others(self) -> None:
        """Adds the coinbase, an empty account and a precompile, each with some probability.

        Sometimes also adds an account at an address where a contract will be created.
        """
        if self.random.random() < 0.3:
            self.put(COINBASE, balance=self.random.choice((1, ETHER)))
        if not self.since("SpuriousDragon") and self.random.random() < 0.4:
            self.put(NOBODY)
        if self.random.random() < 0.1:
            precompile = self.random.randrange(1, 10)
            self.put(bytes(19) + bytes([precompile]), balance=1)
        if self.random.random() < 0.25:
            kinds = [{"balance": 5}, {"nonce": 1}, {"nonce": 1, "code": b"\x5b"}]
            kinds += [{"balance": 1, "storage": {"0x1": 7}}]
            self.put(self.births[0], **self.random.choice(kinds))

    def put(
        self, address: bytes, *, balance: int = 0, nonce: int = 0, code: bytes = b"",
        storage: Fields | None = None,
    ) -> None:  # fmt: skip
        self.pre[address] = {
            "balance": balance, "nonce": nonce, "code": hex_bytes(code), "storage": storage or {},
        }  # fmt: skip

    # --- transactions ---

    def make_transaction(self) -> Fields:
        random = self.random
        sender = PEOPLE[0] if random.random() < 0.8 else random.choice(PEOPLE)
        fields: Fields = {"sender": hex_bytes(sender)}
        self.make_target(fields)
        fields["nonce"] = self.nonces[sender] + (1 if random.random() < 0.02 else 0)
        self.nonces[sender] += fields["nonce"] == self.nonces[sender]
        fields["value"] = random.choice((0, 0, 0, 1, 1000, 10**6))
        if random.random() < 0.01:
            fields["value"] = 2 * ETHER
        types = [0, 0]
        types += [1] * self.since("Berlin") + [2, 2] * self.since("London")
        if fields["to"] is not None or random.random() < 0.05:
            types += [3] * self.since("Cancun") + [4, 4] * self.since("Prague")
        self.make_envelope(fields, random.choice(types))
        return fields

    def make_target(self, fields: Fields) -> None:
        """Sets recipient or init code, data and gas."""
        random = self.random
        chance = random.random()
        gas = random.choice((MOST_GAS, MOST_GAS, random.randrange(20_000, MOST_GAS)))
        data = random.randbytes(random.choice((0, 4, 36, 100)))
        to: bytes | None = random.choice(self.contracts)
        if chance < 0.03:
            number = random.choice(PRECOMPILES)
            to, data = number.to_bytes(20, "big"), precompile_input(random, number)
        elif chance < 0.12:
            to, data = None, initcode(random, self.scene)
            if len(data) > 20 and random.random() < 0.2:
                gas = DEPLOYMENT_GAS
        elif chance < 0.65:
            self.make_caller()
            to = CONTRACTS[0]
        elif chance < 0.75:
            people = (*PEOPLE, NOBODY, *self.births, bytes(19) + bytes([random.randrange(18)]))
            to = random.choice(people)
        if random.random() < 0.05:
            gas = random.randrange(20_000, 70_000)
        if random.random() < 0.02:
            gas = DEPLOYMENT_GAS
        fields |= {"to": to and hex_bytes(to), "data": hex_bytes(data), "gas_limit": gas}

    def make_caller(self) -> None:
        """Makes the first contract call all other contracts and store their results."""
        code = Assembly()
        share = MOST_GAS // (len(self.contracts) + 1)
        for place, address in enumerate(self.contracts[1:]):
            kind = self.random.choice(("CALL", "CALL", "CALL", "CALLCODE", "DELEGATECALL"))
            if not self.scene.knows(kind):
                kind = "CALL"
            for value in (64, 64 * place, self.random.choice((0, 36)), 0):
                code.push(value)
            if kind != "DELEGATECALL":
                code.push(self.random.choice((0, 0, 1)))
            code.push(int.from_bytes(address, "big"))
            code.push(self.random.randrange(share // 2, share))
            code.op(kind)
            code.push(0x100 + place)
            code.op("SSTORE" if self.random.random() < 0.3 else "MSTORE")
        code.push(64 * len(self.contracts))
        code.push(0)
        code.op("RETURN")
        self.pre[CONTRACTS[0]]["code"] = hex_bytes(code.assemble())
        self.pre[CONTRACTS[0]]["balance"] = ETHER

    def make_envelope(self, fields: Fields, kind: int) -> None:
        """Sets the fields of the transaction type: prices, access list, blobs, authorizations."""
        random, base = self.random, self.block["base_fee"]
        fields["type"] = kind
        if kind < 2:
            fields["gas_price"] = base + random.choice((0, 1, 10))
        else:
            fields["max_fee_per_gas"] = base + random.choice((0, 3, 10, 2000))
            tip = min(random.choice((0, 1, 5, 5000)), fields["max_fee_per_gas"])
            fields["max_priority_fee_per_gas"] = tip
        if kind:
            fields["access_list"] = self.access_list()
        if kind == 3:
            fields["max_fee_per_blob_gas"] = random.choice((1, 100, 10**6, 10**9))
            fields["blob_versioned_hashes"] = [
                hex_bytes(b"\x01" + random.randbytes(31)) for _ in range(random.randrange(1, 4))
            ]
        if kind == 4:
            fields["authorization_list"] = [
                self.authorization() for _ in range(random.randrange(1, 4))
            ]

    def access_list(self) -> list[Any]:
        chosen = self.random.choices(self.scene.addresses, k=self.random.randrange(4))
        return [
            [hex_bytes(address), [words.slot(self.random) for _ in range(self.random.randrange(4))]]
            for address in chosen
        ]

    def authorization(self) -> list[Any]:
        """Returns [chain id, address, nonce, y parity, r, s], usually valid."""
        random = self.random
        who = random.randrange(len(PEOPLE))
        nonce = self.nonces[PEOPLE[who]] + random.choice((0, 0, 0, 0, 1))
        target = bytes(20) if random.random() < 0.15 else self.delegate()
        chain = random.choice((0, 1, 1, 1, 1, 2))
        signed = sign_authorization(KEYS[who], chain_id=chain, address=target, nonce=nonce)
        if random.random() < 0.8:
            self.nonces[PEOPLE[who]] = nonce + 1
        return [chain, hex_bytes(target), nonce, signed.y_parity, signed.r, signed.s]


def make_case(seed: int, fork: str | None = None) -> Case:
    """Returns the case of a seed, for the given fork or for a fork that the seed selects."""
    random = Random(seed)
    return CaseMaker(random, fork or random.choice(FORKS)).make()
