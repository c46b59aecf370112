"""Makes random blocks of Amsterdam: programs that grow the state, often with too little gas."""

from random import Random
from typing import Any, Final

from fastevm.chain import system_contracts
from fastevm.core.execution.transaction.transaction import sign_authorization
from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.spec.schedule import schedule_for
from tests.differential.cases import (
    COINBASE,
    CONTRACTS,
    ETHER,
    FORKS,
    KEYS,
    NOBODY,
    PEOPLE,
    Case,
    CaseMaker,
    Fields,
    made_by,
)
from tests.differential.programs import Scene, initcode

from .scenarios import Scenario, Stage, any_scenario

RULE_SETS: Final = {"S": "amsterdam-2026-04", "F": "amsterdam"}
FRESH: Final = tuple(bytes([0xF0 + number]) * 20 for number in range(3))
SYSTEM_CONTRACTS: Final = (
    (system_contracts.BEACON_ROOTS, system_contracts.BEACON_ROOTS_CODE),
    (system_contracts.HISTORY_STORAGE, system_contracts.HISTORY_STORAGE_CODE),
    (system_contracts.WITHDRAWAL_REQUESTS, system_contracts.WITHDRAWAL_REQUESTS_CODE),
    (system_contracts.CONSOLIDATION_REQUESTS, system_contracts.CONSOLIDATION_REQUESTS_CODE),
    (system_contracts.BUILDER_DEPOSITS, system_contracts.BUILDER_DEPOSITS_CODE),
    (system_contracts.BUILDER_EXITS, system_contracts.BUILDER_EXITS_CODE),
)
GAS_LIMITS: Final = (30_000_000, 36_000_000, 60_000_000, 100_000_000, 200_000_000, 1_000_000_000)
SYSTEM_CALLS: Final = tuple(zip(
    (address for address, _ in SYSTEM_CONTRACTS[2:]), (56, 96, 184, 48), strict=True
))  # fmt: skip
TOTAL_CAP: Final = 1 << 32
# Upper bounds of the intrinsic gas: per byte of data, access list entry, authorization and
# creation.
PER_BYTE, PER_ENTRY, PER_AUTHORIZATION, PER_CREATION = 64, 4_180, 8_000, 15_000


class AmsterdamMaker(CaseMaker):
    """Makes one case for one rule set."""

    def __init__(self, random: Random, fork: str) -> None:
        super().__init__(random, FORKS[-1])
        self.fork = fork
        self.era = len(FORKS)
        self.rules = schedule_for(fork).parameters
        self.is_april = fork == RULE_SETS["S"]

    def make(self) -> Case:
        """Returns the case. In the final rules, accounts without code and nonce have no storage."""
        case = super().make()
        for address, account in list(case.pre.items()):
            is_bare = account["code"] == "0x" and not account["nonce"]
            if is_bare and account["storage"] and not self.is_april:
                account["storage"] = {}
            if is_bare and not account["balance"]:
                del case.pre[address]
        case.pre |= {
            hex_bytes(address): self.system_contract(address, code)
            for address, code in SYSTEM_CONTRACTS
        }
        if self.random.random() < 0.1:
            self.narrow_block(case)
        return case

    def system_contract(self, address: bytes, code: bytes) -> Fields:
        """Returns the account of a system contract.

        Its code is rarely unusual, its request queue sometimes not empty.
        """
        random = self.random
        if random.random() < 0.004:
            code = random.choice((b"", b"\xfe", b"\x5f\x5f\xfd"))
        storage: Fields = {}
        if random.random() < 0.15 and address in dict(SYSTEM_CALLS):
            head, count = random.choice((0, 0, 3)), random.randrange(1, 70)
            storage = {"0x0": random.choice((0, 5, 2**256 - 1)), "0x1": random.randrange(1, 20)}
            storage |= {"0x2": head, "0x3": head + count}
            places = [4 + 6 * head + place for place in range(6 * count)]
            storage |= {hex(place): random.getrandbits(256) for place in places}
            storage = {key: value for key, value in storage.items() if value}
        return {"balance": 0, "nonce": 1, "code": hex_bytes(code), "storage": storage}

    def narrow_block(self, case: Case) -> None:
        """Sets a gas limit close to the gas that the transactions or the access list need."""
        random = self.random
        gas = [fields["gas_limit"] for fields in case.transactions]
        room = random.choice((sum(gas), max(gas), min(sum(gas), 1 << 24), 60_000))
        case.block["gas_limit"] = max(1, room + random.randrange(-9_000, 9_000))

    def make_block(self) -> Fields:
        random = self.random
        receivers = random.choices((*PEOPLE, *FRESH, *self.contracts, COINBASE), k=3)
        return {
            **super().make_block(),
            "gas_limit": random.choice(GAS_LIMITS),
            "slot_number": random.choice((0, 7, 2**64 - 1, random.getrandbits(32))),
            "withdrawals": [
                [hex_bytes(address), random.choice((0, 1, 1000))]
                for address in receivers[: random.choice((0, 0, 1, 3))]
            ],
        }

    def make_scenes(self) -> None:
        """Lets programs also use addresses without an account and, rarely, system contracts."""
        super().make_scenes()
        addresses = (*self.scene.addresses, *FRESH, *FRESH)
        if self.random.random() < 0.1:
            addresses += tuple(address for address, _ in SYSTEM_CONTRACTS)
        inner = Scene(self.fork, addresses, number=self.number)
        codes = tuple(initcode(self.random, inner) for _ in range(self.random.randrange(1, 4)))
        self.scene = Scene(self.fork, addresses, codes, self.number)

    def make_transaction(self) -> Fields:
        fields = super().make_transaction()
        if fields["to"] in map(hex_bytes, (*PEOPLE, NOBODY)) and self.random.random() < 0.3:
            fields["to"] = hex_bytes(self.random.choice(FRESH))
        chance = self.random.random()
        if fields["type"] != 3 and self.random.random() < 0.35:
            scenario = self.set_scene(fields)
            fields["gas_limit"] = self.exact_gas(fields) + scenario.gas
        elif chance < 0.94:
            fields["gas_limit"] = self.least_gas(fields) + self.more_gas()
        elif chance < 0.95:
            fields["gas_limit"] = TOTAL_CAP + self.random.choice((-1, 0))
            self.block["gas_limit"] = 2 * TOTAL_CAP
        if self.random.random() < 0.04:
            self.make_floor(fields)
        return fields

    def set_scene(self, fields: Fields) -> Scenario:
        """Makes the transaction run a random scenario. Adds the accounts that it needs."""
        owner = CONTRACTS[0]
        sender = bytes.fromhex(fields["sender"][2:])
        people = tuple(person for person in PEOPLE if person != sender)
        stage = Stage(
            self.random, schedule_for(self.fork), owner, self.nonces[owner], people,
            self.contracts, (*FRESH, NOBODY),
        )  # fmt: skip
        scenario, is_creation = any_scenario(stage)
        code = hex_bytes(scenario.code)
        fields |= {"to": None if is_creation else hex_bytes(owner), "data": code}
        if is_creation:
            fields["value"] = min(fields["value"], 1)
            return scenario
        fields["data"] = "0x"
        self.pre[owner] |= {"code": code, "balance": self.random.choice((0, 1, ETHER))}
        for address in scenario.funded:
            self.put(address, balance=5)
        if self.random.random() < 0.15:
            self.delegated(fields, owner)
        return scenario

    def delegated(self, fields: Fields, owner: bytes) -> None:
        """Sends the transaction to an account that delegates to ``owner``."""
        person = self.random.choice(PEOPLE)
        if person not in self.pre:
            self.put(person, balance=1)
        self.pre[person]["code"] = hex_bytes(b"\xef\x01\x00" + owner)
        fields["to"] = hex_bytes(person)

    def make_others(self) -> None:
        """Adds the inherited accounts, and sometimes one at the address of a future contract."""
        super().make_others()
        sender = PEOPLE[0]
        if self.random.random() < 0.1:
            nonce = self.nonces[sender] + self.random.choice((0, 0, 1))
            kinds = [{"balance": 5}, {"nonce": 1}, {"storage": {"0x1": 7}, "balance": 1}]
            self.put(made_by(sender, nonce), **self.random.choice(kinds))

    def exact_gas(self, fields: Fields) -> int:
        """Returns the gas that the transaction needs before its first frame runs.

        Returns an upper bound under the rules of April.
        """
        values = {**fields, "gas_limit": TOTAL_CAP - 1}
        if self.is_april:
            return self.least_gas(values)
        data = bytes.fromhex(fields["data"][2:])
        is_creation = fields["to"] is None
        gas = 24_000 if is_creation else 15_000 + 6_000 * bool(fields["value"])
        gas += sum(16 if byte else 4 for byte in data) + is_creation * 2 * -(-len(data) // 32)
        for _, keys in fields.get("access_list", ()):
            gas += PER_ENTRY + 4_048 * len(keys)
        return gas + 7_816 * len(fields.get("authorization_list", ()))

    def make_floor(self, fields: Fields) -> None:
        """Adds data so that the calldata floor nears the gas limit or exceeds the gas used."""
        random = self.random
        length = random.choice((300, 3_000, random.randrange(10_000)))
        if random.random() < (0.2 if fields["to"] is None else 0.01):
            length = random.choice((65_536, 65_537, 131_072, 131_073, 262_000))
        fields["data"] = (
            "0x" + (random.randbytes(1).hex() if random.random() < 0.3 else "00") * length
        )
        floor = 12_000 + PER_BYTE * length
        fields["gas_limit"] = floor + random.choice((0, 3_000, 9_000, 12_000, 100_000, 10**6))

    def least_gas(self, fields: Fields) -> int:
        """Returns enough gas for the transaction to be valid, usually a little more."""
        data = bytes.fromhex(fields["data"][2:])
        entries = sum(1 + len(keys) for _, keys in fields.get("access_list", ()))
        authorizations = len(fields.get("authorization_list", ()))
        gas = 21_000 + PER_BYTE * (len(data) + 32 * entries) + PER_ENTRY * entries
        gas += PER_AUTHORIZATION * authorizations + PER_CREATION * (fields["to"] is None)
        if self.is_april:
            state_bytes = 135 * authorizations + 112 * (fields["to"] is None)
            gas += state_bytes * 12 * (self.block["gas_limit"] // 1_000_000)
        return gas

    def more_gas(self) -> int:
        """Returns gas for execution: often too little, sometimes above the cap of 2^24."""
        random = self.random
        kind = random.random()
        if kind < 0.35:
            return 1 << random.randrange(8, 20) | random.getrandbits(12)
        if kind < 0.85:
            return random.randrange(100_000, 3_000_000)
        return random.choice((10_000_000, 16_700_000, 18_000_000, 25_000_000))

    def make_envelope(self, fields: Fields, kind: int) -> None:
        """Sets the inherited fields. Adds repeated, invalid and clearing authorizations."""
        super().make_envelope(fields, kind)
        authorizations = fields.get("authorization_list")
        if authorizations and self.random.random() < 0.15:
            authorizations += self.set_and_cleared()
        while authorizations and self.random.random() < 0.5:
            authorizations.insert(
                self.random.randrange(len(authorizations) + 1),
                self.random.choice((self.authorization, self.any_authorization))(),
            )

    def set_and_cleared(self) -> list[list[Any]]:
        """Returns authorizations of one account that set, clear and set its delegation.

        Half of the time the list begins with the authorization that clears.
        """
        who = self.random.randrange(len(PEOPLE))
        targets = [self.delegate(), bytes(20), self.delegate()][self.random.randrange(2) :]
        found = []
        for target in targets:
            nonce = self.nonces[PEOPLE[who]]
            self.nonces[PEOPLE[who]] += 1
            signed = sign_authorization(KEYS[who], chain_id=1, address=target, nonce=nonce)
            found.append([1, hex_bytes(target), nonce, signed.y_parity, signed.r, signed.s])
        return found

    def any_authorization(self) -> list[Any]:
        """Returns an authorization with a nonce near the correct one."""
        random = self.random
        who = random.randrange(len(PEOPLE))
        nonce = max(0, self.nonces[PEOPLE[who]] + random.choice((-3, -2, -1, -1, 0)))
        target = bytes(20) if random.random() < 0.4 else self.delegate()
        chain = random.choice((0, 1, 1, 1, 2))
        signed = sign_authorization(KEYS[who], chain_id=chain, address=target, nonce=nonce)
        return [chain, hex_bytes(target), nonce, signed.y_parity, signed.r, signed.s]

    def make_caller(self) -> None:
        """Adds the inherited contract that calls all other contracts, sometimes with a balance."""
        super().make_caller()
        if self.random.random() < 0.2:
            self.pre[CONTRACTS[0]]["balance"] = self.random.choice((0, 1, ETHER))


def make_case(seed: int, fork: str) -> Case:
    """Returns the case of a seed under a rule set."""
    return AmsterdamMaker(Random(seed), fork).make()
