"""Makes random signed transactions of users: of every type, valid, and breaking each rule."""

from random import Random
from typing import Any

from .signing import Key, authorization, legacy, typed
from .specification.attributes import FeeParameters
from .specification.encoding import word
from .specification.fees import l1_cost, operator_fee
from .specification.forks import Fork
from .specification.precompile_limits import LIMITS, limit_of
from .worlds import AUTHORITIES, CONTRACTS, ETHER, NOBODY, PEOPLE, PRECOMPILE_CALLER, World

MOST_GAS = 1 << 24
LONGEST_DATA = 2_500
FARTHEST_MATCH = 8_192
LONGEST_INIT_CODE = 49_152
WORDY = b"the quick brown fox jumps over the lazy dog; "
PAIR_SIZES = {0x08: 192, 0x0C: 160, 0x0E: 288, 0x0F: 384}

Fields = dict[str, Any]


def text_like_data(random: Random) -> bytes:
    """Returns data to compress: random bytes, zeros, words, and copies of earlier parts."""
    size = random.randrange(LONGEST_DATA)
    choice = random.random()
    if choice < 0.03:
        quoted = random.randbytes(24)
        away = FARTHEST_MATCH + random.randrange(-4, 5)
        return quoted + random.randbytes(away - len(quoted)) + quoted
    if choice < 0.5:
        text = random.randbytes(200 + size % 300)
        while len(text) < size:
            at = random.randrange(len(text))
            text += text[at : at + random.randrange(3, 14)] + random.randbytes(random.randrange(9))
        return text
    body = random.choice((random.randbytes(size), bytes(size), WORDY * (size // 40), b""))
    return body + random.randbytes(random.randrange(60))


class TransactionMaker:
    """Makes transactions for one block."""

    def __init__(
        self, world: World, parameters: FeeParameters, base_fee: int, gas_limit: int, chain_id: int
    ) -> None:
        self.world = world
        self.random = world.random
        self.fork = world.fork
        self.parameters = parameters
        self.base_fee = base_fee
        self.gas_limit = gas_limit
        self.chain_id = chain_id
        self.kinds = (
            self.transfer, self.transfer, self.call, self.call, self.call, self.call,
            self.creation, self.creation, self.long_data, self.at_the_border,
            self.at_the_border, self.wrong, self.delegating,
        )  # fmt: skip

    def any(self) -> bytes:
        if self.fork >= Fork.GRANITE and self.random.random() < 0.012:
            return self.at_a_limit()
        return self.random.choice(self.kinds)()

    # --- recipient, value, gas and data ---

    def fields(self, to: bytes, value: int = 0, gas: int = 100_000, data: bytes = b"") -> Fields:
        return {"to": to, "value": value, "gas": gas, "data": data}

    def transfer(self) -> bytes:
        random = self.random
        to = random.choice((NOBODY, random.randbytes(20), PEOPLE[0].address, CONTRACTS[1]))
        gas = random.choice((21_000, 21_000, 30_000))
        return self.send(self.fields(to, random.choice((0, 1, ETHER)), gas))

    def call(self) -> bytes:
        random = self.random
        to = random.choice((*CONTRACTS, *CONTRACTS, self.world.delegated))
        gas = random.choice((25_000, 60_000, 300_000, 300_000, 1_000_000))
        data = random.randbytes(random.choice((0, 4, 32, 68)))
        return self.send(self.fields(to, random.choice((0, 0, 1, 1000)), gas, data))

    def creation(self) -> bytes:
        random = self.random
        code = self.world.programs.initcode()
        gas = random.choice((60_000, 100_000, 500_000, 500_000))
        if random.random() < 0.06:
            code = code.ljust(LONGEST_INIT_CODE + random.choice((-31, 0, 1)), b"\0")
            gas = 900_000
        return self.by_somebody_new(self.fields(b"", random.choice((0, 0, 1)), gas, code))

    def long_data(self) -> bytes:
        """Returns a transaction whose data compress well or badly, with gas near the minimum."""
        random = self.random
        data = text_like_data(random)
        tokens = 4 * len(data) - 3 * data.count(0)
        least = 21_000 + random.choice((4, 10)) * tokens
        gas = least + random.choice((-1, 0, 1, 100, 50_000))
        fields = self.fields(random.choice((NOBODY, CONTRACTS[3])), 0, gas, data)
        return self.by_somebody_new(fields)

    def delegating(self) -> bytes:
        """Returns a transaction of type 4, valid from Isthmus on."""
        random = self.random
        fields = self.fields(random.choice((*CONTRACTS, self.world.delegated, NOBODY)), gas=400_000)
        key = random.choice(PEOPLE)
        if self.fork < Fork.ISTHMUS:
            return self.signed(key, self.world.nonces[key.address], fields, 4)
        nonce = self.world.next_nonce(key.address)
        return self.signed(key, nonce, fields | {"authorizations": self.authorizations()}, 4)

    def authorizations(self) -> list[Any]:
        random = self.random
        entries = []
        for _ in range(random.randrange(1, 4)):
            key = random.choice(AUTHORITIES)
            known = self.world.nonces.get(key.address, 0)
            nonce = known + random.choice((0, 0, 0, 1))
            chain_id = random.choice((0, self.chain_id, self.chain_id, 1))
            to = random.choice((*CONTRACTS, bytes(20), (1).to_bytes(20, "big")))
            entries.append(authorization(key, chain_id, to, nonce))
            if nonce == known and chain_id != 1:
                self.world.nonces[key.address] = known + 1
        return entries

    def at_a_limit(self) -> bytes:
        """Returns a precompile call with an input of the largest allowed size, or a bit longer."""
        random = self.random
        numbers = [number for number in LIMITS if limit_of(number, self.fork)]
        number = random.choice(numbers)
        limit, pair = limit_of(number, self.fork), PAIR_SIZES[number]
        assert limit is not None
        size = random.choice((limit // pair * pair, limit + 1, (limit // pair + 1) * pair))
        given = random.choice((10**9, 10**9, 100))
        most = min(self.gas_limit, MOST_GAS if self.fork >= Fork.KARST else 25_000_000)
        data = word(number) + word(size) + word(given)
        return self.send(self.fields(PRECOMPILE_CALLER, 0, most, data))

    # --- sender and signature ---

    def send(self, fields: Fields) -> bytes:
        """Signs the fields for a rich sender, as any type that the fork supports."""
        key = self.random.choice(PEOPLE)
        return self.signed(key, self.world.next_nonce(key.address), fields, self.kind())

    def by_somebody_new(self, fields: Fields) -> bytes:
        """Signs the fields for a new account, so that a rejection changes nobody else's nonce."""
        key = self.world.new_poor()
        self.world.put(key.address, 0, 10**6 * ETHER)
        return self.signed(key, 0, fields, self.kind())

    def kind(self) -> int:
        return self.random.choice((0, 0, 1, 2, 2, 2))

    def signed(self, key: Key, nonce: int, fields: Fields, kind: int, **changes: Any) -> bytes:
        """Returns the raw transaction. `changes` replace prices, the chain id or the signature."""
        random = self.random
        price = self.base_fee + random.choice((0, 1, self.base_fee, 10**9))
        tip = random.choice((0, 1, price, price))
        price, tip = changes.get("price", price), changes.get("tip", tip)
        chain_id = changes.get("chain_id", self.chain_id)
        rest = [fields["gas"], fields["to"], fields["value"], fields["data"]]
        if kind == 0:
            only_here = "chain_id" in changes or random.random() < 0.7
            return legacy(key, [nonce, price, *rest], chain_id if only_here else None)
        high_s = changes.get("has_high_s", False)
        if kind == 1:
            return typed(1, key, [chain_id, nonce, price, *rest, self.access_list()], high_s)
        items = [chain_id, nonce, min(tip, changes.get("most_tip", price)), price, *rest]
        items.append(self.access_list())
        if kind == 3:
            items += [1, [b"\x01" + bytes(31)]]
        if kind == 4:
            items.append(fields.get("authorizations", []))
        return typed(kind, key, items, high_s)

    def access_list(self) -> list[Any]:
        random = self.random
        if random.random() < 0.6:
            return []
        return [
            [
                random.choice(CONTRACTS),
                [word(random.randrange(4)) for _ in range(random.randrange(3))],
            ]
            for _ in range(random.randrange(1, 3))
        ]

    def at_the_border(self) -> bytes:
        """Returns a transaction whose sender can just pay all fees, or has one wei less or more."""
        random = self.random
        key = self.world.new_poor()
        kind, price = self.kind(), self.base_fee + random.choice((0, 7, 10**9))
        to = random.choice((NOBODY, CONTRACTS[0], CONTRACTS[4]))
        data = random.choice((b"", random.randbytes(200), bytes(300)))
        fields = self.fields(to, random.choice((0, 1, ETHER)), 120_000, data)
        raw = self.signed(key, 0, fields, kind, price=price)
        need = fields["gas"] * price + fields["value"] + l1_cost(raw, self.parameters, self.fork)
        need += operator_fee(fields["gas"], self.parameters, self.fork)
        self.world.put(key.address, 0, max(0, need + random.choice((-1, -1, 0, 0, 1))))
        return raw

    # --- invalid transactions ---

    def wrong(self) -> bytes:
        """Returns a transaction that breaks one rule. The rich sender's next nonce stays unused."""
        random = self.random
        key = random.choice(PEOPLE)
        nonce = self.world.nonces[key.address]
        fields = self.fields(NOBODY, gas=21_000)
        choice = random.randrange(11)
        if choice == 0:
            return self.signed(key, nonce + 1, fields, self.kind())
        if choice == 1:
            return self.signed(key, max(0, nonce - 1) if nonce else 5, fields, self.kind())
        if choice == 2:
            return self.signed(key, nonce, fields, self.kind(), chain_id=self.chain_id + 1)
        if choice == 3:
            return self.signed(key, nonce, fields | {"gas": 20_999}, self.kind())
        if choice == 4 and self.base_fee:
            return self.signed(key, nonce, fields, self.kind(), price=self.base_fee - 1)
        if choice == 5:
            price = self.base_fee + 5
            return self.signed(
                key, nonce, fields, 2, price=price, tip=price + 1, most_tip=price + 1
            )
        if choice == 6:
            return self.signed(key, nonce, fields | {"value": 1 << 230}, self.kind())
        if choice == 7:
            return self.signed(key, nonce, fields, 1, has_high_s=True)
        if choice == 8:
            return self.signed(key, nonce, fields, 3)
        if choice == 9 and self.fork >= Fork.KARST:
            return self.signed(key, nonce, fields | {"gas": MOST_GAS + 1}, 2)
        if choice == 10 and self.fork >= Fork.ISTHMUS:
            return self.signed(key, nonce, fields, 4)
        return self.signed(key, nonce, fields | {"gas": self.gas_limit + 1}, self.kind())
