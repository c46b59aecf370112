"""Random blocks of Amsterdam: programs that grow the state, with gas that often ends too soon."""

from random import Random
from typing import Any, Final

from fastevm.chain import system_contracts
from fastevm.execution.transaction import sign_authorization
from fastevm.spec.schedule import schedule_for
from fastevm.wire.text.hex import hex_bytes

from ..cases import COINBASE, CONTRACTS, ETHER, FORKS, KEYS, NOBODY, PEOPLE, Case, CaseMaker, Fields
from ..programs import Scene, initcode

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
# What bytes, list entries, authorizations and creations may cost at most before execution.
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
        """The case; storage without code stays out where the rules do not tell of it."""
        case = super().make()
        for address, account in list(case.pre.items()):
            is_bare = account["code"] == "0x" and not account["nonce"]
            if is_bare and account["storage"] and not self.is_april:
                account["storage"] = {}
            if is_bare and not account["balance"]:
                del case.pre[address]
        case.pre |= {
            hex_bytes(address): {"balance": 0, "nonce": 1, "code": hex_bytes(code), "storage": {}}
            for address, code in SYSTEM_CONTRACTS
        }
        return case

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
        """The scenes of other forks, with more addresses where nothing is yet."""
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
        if self.random.random() < 0.94:
            fields["gas_limit"] = self.least_gas(fields) + self.more_gas()
        return fields

    def least_gas(self, fields: Fields) -> int:
        """Enough for the transaction to be valid, mostly a little more than needed."""
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
        """Gas for execution: often too little, now and then beyond the cap of one dimension."""
        random = self.random
        kind = random.random()
        if kind < 0.35:
            return 1 << random.randrange(8, 20) | random.getrandbits(12)
        if kind < 0.85:
            return random.randrange(100_000, 3_000_000)
        return random.choice((10_000_000, 16_700_000, 18_000_000, 25_000_000))

    def make_envelope(self, fields: Fields, kind: int) -> None:
        """That of other forks; authorizations come again, so that some are invalid or clear."""
        super().make_envelope(fields, kind)
        authorizations = fields.get("authorization_list")
        while authorizations and self.random.random() < 0.5:
            authorizations.insert(
                self.random.randrange(len(authorizations) + 1),
                self.random.choice((self.authorization, self.any_authorization))(),
            )

    def any_authorization(self) -> list[Any]:
        """One whose nonce may be anything near the right one; the count of nonces stays."""
        random = self.random
        who = random.randrange(len(PEOPLE))
        nonce = max(0, self.nonces[PEOPLE[who]] + random.choice((-3, -2, -1, -1, 0)))
        target = bytes(20) if random.random() < 0.4 else self.delegate()
        chain = random.choice((0, 1, 1, 1, 2))
        signed = sign_authorization(KEYS[who], chain_id=chain, address=target, nonce=nonce)
        return [chain, hex_bytes(target), nonce, signed.y_parity, signed.r, signed.s]

    def make_caller(self) -> None:
        """The caller of other forks; what it hands on may be all it has."""
        super().make_caller()
        if self.random.random() < 0.2:
            self.pre[CONTRACTS[0]]["balance"] = self.random.choice((0, 1, ETHER))


def make_case(seed: int, fork: str) -> Case:
    """The case of a seed under a rule set."""
    return AmsterdamMaker(Random(seed), fork).make()
