"""Makes random blocks whose transactions conflict: few senders, few contracts, few slots."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from fastevm.core.crypto.secp256k1 import public_key_address
from fastevm.core.execution.block.block import BlockBuilder
from fastevm.core.execution.block.header_draft import draft_header
from fastevm.core.execution.transaction.transaction import Transaction, sign_authorization
from fastevm.core.execution.types import Header
from fastevm.core.spec.schedule import ForkSchedule, schedule_for
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidBlock

from .programs import ADDRESSES, LONELY, SLOTS, Programs

KEYS: Final = [bytes([n]) * 32 for n in range(1, 7)]
SENDERS: Final = [public_key_address(key) for key in KEYS]
FORKS: Final = (
    "Byzantium", "Istanbul", "Berlin", "London", "Shanghai", "Cancun", "Prague", "Osaka",
)  # fmt: skip
MOST_TRANSACTIONS: Final = 40
LARGE_SHARE: Final = 0.02  # share of blocks that threads also end together
LARGE: Final = (64, 90)
FIELDS: Final = (
    "state_root", "receipts", "receipts_root", "logs_bloom", "gas_used", "blob_gas_used",
    "requests", "withdrawals_root",
)  # fmt: skip
SYSTEM_CONTRACTS: Final = (
    bytes.fromhex("00000961ef480eb55e80d19ad83579a64c007002"),
    bytes.fromhex("0000bbddc7ce488642fb579f8b00f3a590007251"),
)


@dataclass(frozen=True)
class RandomBlock:
    """The state before the block, a draft header, and the transactions."""

    layer: Layer
    header: Header
    schedule: ForkSchedule
    transactions: list[Transaction]

    def result(self, threads: int) -> dict[str, Any]:
        """Returns the result of the block, or the text of its rejection."""
        withdrawals = () if self.schedule.parameters["has_withdrawals"] else None
        builder = BlockBuilder(
            self.layer, self.header, self.schedule, chain_id=1, deposit_contract=b"\x0d" * 20,
            ancestors=[b"\x01" * 32], withdrawals=withdrawals, threads=threads,
        )  # fmt: skip
        builder.begin()
        try:
            builder.add_all(self.transactions)
        except InvalidBlock as error:
            return {"refused": str(error), "gas_used": builder.gas_used}
        result = builder.finish()
        fields = {name: getattr(result, name) for name in FIELDS}
        return fields | {"receipts": tuple(result.receipts)}


class Maker:
    """Makes one block from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.fork = random.choice(FORKS)
        self.schedule = schedule_for(self.fork)
        self.has = self.schedule.parameters
        self.coinbase = random.choice([b"\xcc" * 20, b"\xcc" * 20, SENDERS[0], ADDRESSES[0]])
        self.programs = Programs(random, self.coinbase, SENDERS, old=self.fork == "Byzantium")
        self.nonces = dict.fromkeys(SENDERS, 0)

    def layer(self) -> Layer:
        """Returns the state before the block."""
        random = self.random
        accounts: dict[bytes, dict[str, Any]] = {
            sender: {"balance": 10**18 if random.random() < 0.97 else 10**15} for sender in SENDERS
        }
        for number, address in enumerate(ADDRESSES):
            accounts[address] = {"balance": random.choice([0, 3, 50, 10**9]), "nonce": 1}
            accounts[address]["code"] = self.programs.code()
            if number % 2:
                accounts[address]["storage"] = {slot: random.randrange(3) for slot in range(SLOTS)}
        if self.fork == "Byzantium":
            accounts[LONELY[1]] = {"balance": 0}
        accounts[LONELY[2]] = {"balance": random.choice([1, 10])}
        if random.random() < 0.5:
            accounts.setdefault(b"\xcc" * 20, {"balance": random.choice([1, 10**18])})
        return Layer.of(accounts | {address: {"code": b"\x00"} for address in SYSTEM_CONTRACTS})

    def header(self) -> Header:
        """Returns a draft of the block's header, with the fields that the fork requires."""
        fields: dict[str, Any] = {"gas_limit": self.random.choice([30_000_000, 5_000_000])}
        if not self.has["proof_of_stake"]:
            fields["difficulty"] = 0x20000
        if self.has["has_base_fee"]:
            fields["base_fee_per_gas"] = 1_000
        if self.has["has_withdrawals"]:
            fields["withdrawals_root"] = bytes(32)
        if self.has["has_blobs"]:
            fields |= {"excess_blob_gas": 0, "blob_gas_used": 0}
            fields["parent_beacon_block_root"] = bytes(32)
        if self.has["has_requests"]:
            fields["requests_hash"] = bytes(32)
        return draft_header(
            Header(**fields), self.schedule, timestamp=12, coinbase=self.coinbase,
            parent_beacon_block_root=b"\x0b" * 32,
        )  # fmt: skip

    def price(self) -> dict[str, int]:
        """Returns gas prices. Some tips are zero."""
        if self.has["has_base_fee"] and self.random.random() < 0.5:
            tip = self.random.choice([0, 0, 1, 7])
            return {"max_fee_per_gas": 2_000, "max_priority_fee_per_gas": tip}
        free = 875 if self.has["has_base_fee"] else 0
        return {"gas_price": self.random.choice([free, 1_000, 1_500])}

    def transaction(self) -> Transaction:
        """Returns the next transaction of a random sender. Some transactions are invalid."""
        random = self.random
        at = min(random.randrange(len(KEYS)), random.randrange(len(KEYS)))
        nonce = self.nonces[SENDERS[at]] + (random.random() < 0.003)
        self.nonces[SENDERS[at]] += 1
        fields: dict[str, Any] = {
            "nonce": nonce, "gas_limit": random.choice([21_000, 60_000, 200_000, 400_000]),
            "to": self.programs.address(), "value": random.choice([0, 0, 1, 5, 10**9]),
        } | self.price()  # fmt: skip
        if random.random() < 0.05:
            fields |= {"to": None, "data": self.programs.code()}
        if self.has["has_access_lists"] and random.random() < 0.2:
            fields["access_list"] = [(self.programs.address(), [random.randrange(SLOTS)])]
        if self.has["has_delegations"] and fields["to"] is not None and random.random() < 0.2:
            fields |= {"max_fee_per_gas": 2_000, "max_priority_fee_per_gas": 1}
            fields.pop("gas_price", None)
            fields["authorization_list"] = [self.authorization()]
        if fields.keys() & {"data", "access_list", "authorization_list"}:
            fields["gas_limit"] = max(fields["gas_limit"], 120_000)
        return Transaction.build(**fields).sign(KEYS[at], chain_id=1)

    def authorization(self) -> Any:
        """Returns an authorization that makes a sender delegate to a contract.

        The nonce may be wrong.
        """
        at = self.random.randrange(len(KEYS))
        address = self.random.choice([*ADDRESSES, bytes(20)])
        nonce = self.nonces[SENDERS[at]]
        if self.random.random() < 0.7:
            self.nonces[SENDERS[at]] += 1
        return sign_authorization(KEYS[at], chain_id=1, address=address, nonce=nonce)

    def block(self) -> RandomBlock:
        """Returns the block of the seed."""
        many = self.random.random() < LARGE_SHARE
        count = self.random.randint(*(LARGE if many else (8, MOST_TRANSACTIONS)))
        layer, header = self.layer(), self.header()
        return RandomBlock(layer, header, self.schedule, [self.transaction() for _ in range(count)])


def differing(seed: int, threads: Callable[[Random], int]) -> list[str]:
    """Returns the fields in which parallel and serial execution of a block differ."""
    block = Maker(seed).block()
    expected, found = block.result(1), block.result(threads(Random(seed)))
    return [
        name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)
    ]
