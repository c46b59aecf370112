"""Makes random deposits: L1 attributes, users' deposits, upgrades, and every kind of failure."""

from typing import Any

from .signing import created_by
from .specification.attributes import DEPOSITOR, L1_BLOCK, Attributes
from .specification.deposits import (
    DEPOSIT_TYPE,
    Deposit,
    attributes_source_hash,
    upgrade_source_hash,
    user_source_hash,
)
from .specification.encoding import rlp_encode, word
from .specification.forks import Fork
from .worlds import ALIASED, CONTRACTS, ETHER, NOBODY, PEOPLE, World

BEDROCK_GAS, REGOLITH_GAS = 150_000_000, 1_000_000
LONGEST_DATA = 3_000
# gas limit of an ordinary deposit, far below the gas limit of a block
SMALL_GAS = 300_000


class DepositMaker:
    """Makes deposits for one block."""

    def __init__(self, world: World, attributes: Attributes, form: Fork, gas_limit: int) -> None:
        self.world = world
        self.random = world.random
        self.fork = world.fork
        self.l1 = attributes
        self.form = form
        self.gas_limit = gas_limit
        self.made = 0
        self.kinds = (
            self.transfer, self.transfer, self.call, self.call, self.call, self.creation,
            self.creation, self.too_much_value, self.too_little_gas, self.long_data,
            self.for_system, self.collision, self.to_delegated, self.huge_gas, self.upgrade,
        )  # fmt: skip

    def attributes(self) -> bytes:
        """Returns the first transaction of a block, in the format of the L1 attributes contract."""
        is_bedrock = self.fork < Fork.REGOLITH
        source = attributes_source_hash(word(self.l1.hash), self.l1.sequence_number)
        data = self.l1.calldata(self.form)
        gas = BEDROCK_GAS if is_bedrock else REGOLITH_GAS
        self.world.next_nonce(DEPOSITOR)
        return Deposit(source, DEPOSITOR, L1_BLOCK, 0, 0, gas, is_bedrock, data).encode()

    def any(self) -> bytes:
        if self.random.random() < 0.04:
            return self.malformed()
        return self.random.choice(self.kinds)().encode()

    def malformed(self) -> bytes:
        """Returns a deposit with a malformed field, or with a field too few or too many."""
        random = self.random
        fields: list[Any] = [random.randbytes(32), NOBODY, NOBODY, 1, 0, 100_000, b"", b""]
        place, value = random.choice(
            (
                (0, random.randbytes(31)), (1, random.randbytes(21)), (2, random.randbytes(19)),
                (3, 1 << 128), (3, b"\0\1"), (4, 1 << 256), (4, b"\0"), (5, 1 << 64), (6, b"\2"),
                (6, b"\0"), (7, []),
            )
        )  # fmt: skip
        fields[place] = value
        if random.random() < 0.2:
            fields = random.choice((fields[:7], [*fields, b""]))
        return bytes([DEPOSIT_TYPE]) + rlp_encode(fields)

    def deposit(
        self, sender: bytes, to: bytes, value: int = 0, gas: int = 200_000, data: bytes = b"",
        mint: int | None = None, is_system: bool = False,
    ) -> Deposit:  # fmt: skip
        """Returns a user's deposit. Without ``mint``, the deposit mints a random amount."""
        random = self.random
        if mint is None:
            mint = random.choice((0, 0, 1, ETHER, (1 << 128) - 1 - 10**30))
        self.made += 1
        self.world.next_nonce(sender)
        source = user_source_hash(random.randbytes(32), self.made)
        return Deposit(source, sender, to, mint, value, gas, is_system, data)

    def sender(self) -> bytes:
        """Returns a sender: often a user, otherwise a contract of L1 or L2, or a new address."""
        people = [key.address for key in PEOPLE]
        return self.random.choice((*people, *people, ALIASED, NOBODY, CONTRACTS[0]))

    def transfer(self) -> Deposit:
        random = self.random
        to = random.choice((NOBODY, PEOPLE[1].address, random.randbytes(20), (2).to_bytes(20)))
        value = random.choice((0, 1, ETHER))
        gas = random.choice((21_000, 25_000, SMALL_GAS))
        mint = random.choice((None, value))
        return self.deposit(self.sender(), to, value, gas, mint=mint)

    def call(self) -> Deposit:
        random = self.random
        to = random.choice(CONTRACTS)
        gas = random.choice((21_500, 30_000, 60_000, SMALL_GAS, SMALL_GAS))
        data = random.randbytes(random.choice((0, 4, 36, 100)))
        return self.deposit(self.sender(), to, random.choice((0, 0, 1)), gas, data)

    def creation(self) -> Deposit:
        gas = self.random.choice((53_000, 60_000, SMALL_GAS, 500_000))
        value = self.random.choice((0, 0, 1))
        return self.deposit(self.sender(), b"", value, gas, self.world.programs.initcode())

    def too_much_value(self) -> Deposit:
        to = self.random.choice((b"", NOBODY, CONTRACTS[1]))
        value = self.random.choice(((1 << 200), (1 << 256) - 1))
        return self.deposit(self.sender(), to, value)

    def too_little_gas(self) -> Deposit:
        gas = self.random.choice((0, 1, 20_999, 21_003, 52_999))
        data = self.random.choice((b"", b"\1", b"\0" * 50))
        to = self.random.choice((b"", NOBODY, CONTRACTS[1]))
        return self.deposit(self.sender(), to, 0, gas, data)

    def long_data(self) -> Deposit:
        """Returns a deposit with gas near the minimum for its calldata.

        The minimum is 10 gas per token of calldata in Isthmus and 4 earlier, plus 21,000.
        """
        random = self.random
        data = random.randbytes(random.randrange(LONGEST_DATA))
        tokens = 4 * len(data) - 3 * data.count(0)
        gas = 21_000 + random.choice((4, 10)) * tokens + random.choice((-1, 0, 1, 5_000, 60_000))
        return self.deposit(self.sender(), random.choice((NOBODY, CONTRACTS[2])), 0, gas, data)

    def for_system(self) -> Deposit:
        """Returns a system deposit.

        Before Regolith it succeeds, because clients treat failures differently.
        """
        if self.fork < Fork.REGOLITH:
            return self.deposit(DEPOSITOR, NOBODY, 0, 10**8, is_system=True, mint=0)
        return self.deposit(self.sender(), self.random.choice(CONTRACTS), 0, is_system=True)

    def collision(self) -> Deposit:
        """Returns a creation at an address that already has a contract."""
        sender = self.random.choice(PEOPLE).address
        there = created_by(sender, self.world.nonces[sender])
        self.world.put(there, self.random.choice((0, 1)), 3, b"\x00")
        return self.deposit(sender, b"", 0, SMALL_GAS, b"\x00")

    def to_delegated(self) -> Deposit:
        return self.deposit(self.sender(), self.world.delegated, self.random.choice((0, 1)))

    def huge_gas(self) -> Deposit:
        """Returns a deposit above Karst's transaction gas cap, sometimes above the block's gas."""
        if self.fork < Fork.REGOLITH:
            return self.call()
        deposit = self.deposit(self.sender(), NOBODY, 0, self.random.choice((1 << 24, 17_000_000)))
        if self.random.random() < 0.4:
            self.world.nonces[deposit.sender] -= 1
            gas = self.gas_limit + self.random.choice((0, 1, 1 << 40))
            return Deposit(**vars(deposit) | {"gas": gas})
        if deposit.gas > self.gas_limit:
            self.world.nonces[deposit.sender] -= 1
        return deposit

    def upgrade(self) -> Deposit:
        """Returns the deposit that deploys a contract in a fork's first block.

        Its sender has no key.
        """
        source = upgrade_source_hash(f"Test: deployment {self.made}")
        sender = bytes.fromhex("42100000000000000000000000000000000000") + bytes([self.made])
        self.made += 1
        code = self.world.programs.initcode()
        return Deposit(source, sender, b"", 0, 0, 375_000, False, code)
