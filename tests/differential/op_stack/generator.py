"""Makes random OP-stack blocks: a state, deposits, and users' transactions to try.

`specification.blocks` executes a case. Some users' transactions are invalid at their position:
fastevm and the transcription must both leave them out and continue with the next transaction.
"""

from random import Random
from typing import Any

from .deposit_maker import DepositMaker
from .specification.attributes import Attributes, FeeParameters, parameters_from_attributes
from .specification.deposits import decode_deposit
from .specification.encoding import to_hex
from .specification.forks import Fork
from .specification.headers import FeeRule, Header, base_fee_after, completed
from .transaction_maker import TransactionMaker
from .worlds import World

CHAIN_ID = 901
CONSTANTS = FeeRule(denominator=250, elasticity=6)
ANCESTORS = 3
MOST_U64 = (1 << 64) - 1

Fields = dict[str, Any]


class BlockMaker:
    """Makes one block of a fork."""

    def __init__(self, random: Random, fork: Fork) -> None:
        self.random = random
        self.fork = fork
        self.parent_fork = fork
        if fork > Fork.BEDROCK and random.random() < 0.12:
            self.parent_fork = Fork(fork - 1)
        self.number = random.choice((2, 5, 1000, 105_235_063))
        self.timestamp = random.randrange(1, 1 << 33)
        # The format of the L1 attributes. A fork's first block still has the format of the fork
        # before.
        self.form = self.parent_fork
        self.gas_limit = random.choice((30_000_000, 30_000_000, 60_000_000, 5_000_000, 1_500_000))
        self.parent = self.make_parent()
        self.base_fee = base_fee_after(self.parent, self.parent_fork, fork, CONSTANTS)
        self.world = World(random, fork, self.form, self.number)
        self.attributes = self.make_attributes()

    def make(self, transactions: int) -> Fields:
        """Returns a case with about ``transactions`` transactions."""
        random = self.random
        self.world.put_attributes(self.make_attributes(), self.form)
        deposits = DepositMaker(self.world, self.attributes, self.form, self.gas_limit)
        raw = [deposits.attributes()]
        if random.random() < 0.75:
            raw += [deposits.any() for _ in range(random.randrange(1, max(2, transactions // 2)))]
        maker = TransactionMaker(
            self.world, self.parameters(), self.base_fee, self.gas_limit, CHAIN_ID
        )
        raw += [maker.any() for _ in range(max(1, transactions - len(raw)))]
        return self.case(raw)

    def case(self, raw: list[bytes]) -> Fields:
        random = self.random
        coinbase = random.choice((0x4200000000000000000000000000000000000011,) * 4 + (0xC1 << 152,))
        return {
            "chain_id": CHAIN_ID,
            "constants": {
                "denominator": CONSTANTS.denominator,
                "elasticity": CONSTANTS.elasticity,
            },
            "fork": self.fork.title,
            "parent_fork": self.parent_fork.title,
            "parent": self.parent_fields(),
            "block": {
                "coinbase": to_hex(coinbase.to_bytes(20, "big")),
                "timestamp": self.timestamp,
                "gas_limit": self.gas_limit,
                "prev_randao": to_hex(random.randbytes(32)),
                "parent_beacon_block_root": to_hex(random.randbytes(32)),
                "extra_data": to_hex(self.rule().extra_data(self.fork)),
            },
            "ancestors": [to_hex(random.randbytes(32)) for _ in range(min(300, self.number - 1))],
            "pre": self.world.pre(),
            "transactions": [to_hex(item) for item in raw],
        }

    def rule(self) -> FeeRule:
        random = self.random
        return FeeRule(
            random.choice((1, 8, 50, 250)),
            random.choice((1, 2, 6, 10)),
            random.choice((0, 1, 5_000_000, 10**12)),
        )

    def make_parent(self) -> Header:
        """Returns the parent header. The transcription later fills in the state root."""
        random = self.random
        limit = random.choice((self.gas_limit, 30_000_000))
        used = random.choice((0, limit, limit // 6, random.randrange(limit)))
        header = Header(
            parent_hash=random.randbytes(32),
            coinbase=bytes(20),
            state_root=bytes(32),
            transactions_root=random.randbytes(32),
            receipts_root=random.randbytes(32),
            bloom=bytes(256),
            number=self.number - 1,
            gas_limit=limit,
            gas_used=used,
            timestamp=self.timestamp - 1,
            extra_data=self.rule().extra_data(self.parent_fork),
            prev_randao=random.randbytes(32),
            base_fee=random.choice((1, 7, 1000, 10**6, 10**9)),
        )
        footprint = random.choice((0, random.randrange(limit), limit))
        return completed(header, self.parent_fork, bytes(32), footprint, random.randbytes(32))

    def parent_fields(self) -> Fields:
        """Returns the parent's fields as JSON, without the roots that depend on the state.

        The transcription computes these roots.
        """
        fields: Fields = {}
        for name, value in vars(self.parent).items():
            fields[name] = to_hex(value) if isinstance(value, bytes) else value
        fields["state_root"] = None
        if self.parent_fork >= Fork.ISTHMUS:
            fields["withdrawals_root"] = None
        return fields

    def make_attributes(self) -> Attributes:
        """Returns random L1 attributes.

        The scalars and the blob base fee are all zero only in Ecotone. In later forks, clients
        disagree on such attributes (see `specification.fees.is_first_of_ecotone`).
        """
        random = self.random
        has_scalars = self.fork >= Fork.FJORD or random.random() < 0.9
        scalars = random.choice(((0, 1_000_000), (1368, 810_949), (7600, 862_000), (1, 0)))
        blob_base_fee = random.choice((1, 10**7, 57_422_457_042))
        return Attributes(
            number=random.randrange(1 << 32),
            timestamp=max(0, self.timestamp - 12),
            base_fee=random.choice((0, 7, 10**9, 47_036_678_951, 1 << 60)),
            hash=random.randrange(1 << 256),
            sequence_number=random.choice((0, 0, 1, 5)),
            batcher_hash=random.randrange(1 << 160),
            overhead=random.choice((0, 188, 2100)),
            scalar=random.choice((0, 684_000, 1_000_000)),
            base_fee_scalar=scalars[0] if has_scalars else 0,
            blob_base_fee_scalar=scalars[1] if has_scalars else 0,
            blob_base_fee=blob_base_fee if has_scalars else 0,
            operator_fee_scalar=random.choice((0, 0, 1000, 2_000_000, (1 << 32) - 1)),
            operator_fee_constant=random.choice((0, 0, 10, 10**15, MOST_U64)),
            footprint_scalar=random.choice((0, 1, 148, 400, 400, 20_000, 65_535)),
        )

    def parameters(self) -> FeeParameters:
        """Returns the fee parameters that apply after the block's L1 attributes deposit."""
        reported = Attributes.decode(self.attributes.calldata(self.form))
        known = vars(parameters_from_attributes(reported))
        storage = self.world.stored_parameters()
        # Since Ecotone the attributes do not set these two, so the contract keeps the old values.
        if self.form >= Fork.ECOTONE:
            known = known | {name: storage[name] for name in ("overhead", "scalar")}
        return FeeParameters(**known)


def make_block(seed: int, fork: Fork, transactions: int = 16) -> Fields:
    """Returns the block of a seed."""
    random = Random(f"{fork.title}-{seed}")
    case = BlockMaker(random, fork).make(transactions)
    # Checks that the L1 attributes deposit, which every block begins with, decodes.
    decode_deposit(bytes.fromhex(case["transactions"][0][2:]))
    return case
