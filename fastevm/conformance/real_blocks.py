"""Executes real blocks on recorded state and checks every header field."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from fastevm.chain.config import ChainConfig
from fastevm.chain.named import find
from fastevm.chain.stateless.verification import check_header, executed, schedule_of
from fastevm.chain.stateless.witness_state import WitnessState
from fastevm.conformance.fields import accounts_of, address_of, bytes_of, number_of
from fastevm.conformance.runner import Apart, Mismatch, Outcome
from fastevm.core.execution.block.block import execute_block
from fastevm.core.execution.block.block_decoding import decode_block
from fastevm.core.execution.block.block_result import BlockResult
from fastevm.core.execution.block.fees import FeeParameters
from fastevm.core.execution.block.header_draft import draft_header, sealed_header
from fastevm.core.execution.block.validation import validate_result
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import ZERO_HASH, Block, Header
from fastevm.core.primitives import rlp
from fastevm.core.primitives.replace import replace
from fastevm.core.state.layer import Layer
from fastevm.core.state.source import Found, Wanted

State = TypeVar("State", bound=WitnessState)

WINDOW: Final = 256  # number of ancestors that BLOCKHASH can read
INCOMPLETE: Final = {
    "mainnet_witness/json/zkpi_1-22188088": "its witness lacks an account that the block pays",
}
RESULTS: Final = {
    "gasUsed": "gas_used",
    "logsBloom": "logs_bloom",
    "receiptsRoot": "receipts_root",
    "stateRoot": "state_root",
}


class NotedState(WitnessState):
    """A witness state that records which values the execution reads."""

    def __init__(self, *nodes: Any, **options: Any) -> None:
        super().__init__(*nodes, **options)
        self.noted: defaultdict[bytes, dict[str, Any]] = defaultdict(dict)

    def fetch(self, wanted: Wanted) -> Found:
        """Returns the values of `WitnessState.fetch` and records them."""
        found = super().fetch(wanted)
        for address, item in found.accounts.items():
            self.noted[address] |= {"balance": item.balance, "nonce": item.nonce, "code": item.code}
        for (address, slot), value in found.slots.items():
            self.noted[address].setdefault("storage", {})[slot] = value
        return found


class RealBlock(NamedTuple):
    """A recorded case, decoded."""

    name: str
    chain: ChainConfig
    block: Block
    parent: Header | None
    fields: Mapping[str, Any]

    @classmethod
    def read(cls, name: str, fields: Mapping[str, Any]) -> "RealBlock":
        """Decodes a case. Derives the header of a block that payload attributes describe."""
        chain = find(fields["chain_id"]).config()
        parent = header_of(fields["parent"]) if fields["parent"] else None
        transactions = tuple(Transaction.decode(bytes_of(raw)) for raw in fields["transactions"])
        if fields["header"] is None:
            assert parent is not None
            header = built_header(fields["attributes"], parent, chain)
            return cls(name, chain, Block(header, transactions, (), ()), parent, fields)
        block = block_of(fields, transactions)
        return cls(name, chain, block, parent, fields)

    @property
    def ancestors(self) -> tuple[bytes, ...]:
        """The hashes of ancestors, parent first, with zeros for unknown hashes."""
        known = {int(n): bytes_of(item) for n, item in self.fields["block_hashes"].items()}
        known.setdefault(self.block.number - 1, self.block.header.parent_hash)
        least = max(min(known), self.block.number - WINDOW)
        return tuple(known.get(n, ZERO_HASH) for n in range(self.block.number - 1, least - 1, -1))

    def on_witness(self) -> BlockResult:
        """Returns the result of execution on the block's witness (trie nodes and codes)."""
        return self._executed_on(self._witness(WitnessState))

    def accounts_read(self) -> dict[bytes, dict[str, Any]]:
        """Returns the accounts that the execution reads from the witness, for Layer.of."""
        state = self._witness(NotedState)
        self._executed_on(state)
        return {address: item for address, item in state.noted.items() if any(item.values())}

    def _witness(self, kind: type[State]) -> State:
        pre, header = self.fields["pre"], self.block.header
        return kind(
            bytes_of(pre["stateRoot"]),
            map(bytes_of, pre["nodes"].values()),
            map(bytes_of, pre["codes"].values()),
            block_number=header.number - 1,
            block_hash=header.parent_hash,
        )

    def _executed_on(self, state: WitnessState) -> BlockResult:
        # Only the parent's timestamp matters, in case a fork starts between the blocks.
        header = self.block.header
        parent = self.parent or replace(header, number=header.number - 1)
        return executed(self.block, parent, state, self.chain, self.ancestors)

    def on_accounts(self) -> BlockResult:
        """Returns the result of execution on the recorded accounts; state roots are zero."""
        return self.executor_on(Layer.of(accounts_of(self.fields["pre"]["accounts"])))(self.block)

    def executor_on(self, layer: Layer) -> Callable[[Block], BlockResult]:
        """Returns a function that executes the block on a layer; state roots are zero.

        The function takes the block; its transactions may be new objects with equal values.
        """
        return partial(
            execute_block,
            layer,
            schedule=schedule_of(self.block.header, self.chain),
            chain_id=self.chain.chain_id,
            deposit_contract=self.chain.deposit_contract,
            ancestors=self.ancestors,
            state_root=False,
            root_of=lambda _: ZERO_HASH,
        )


def verified(name: str, fields: Mapping[str, Any]) -> Outcome:
    """Executes a block on its witness; every header field must match."""
    if name in INCOMPLETE:
        return Apart(INCOMPLETE[name])
    real = RealBlock.read(name, fields)
    if fields["header"] is None:
        return differing({"hash": fields["expect"]["hash"]}, {"hash": sealed(real).hash})
    if not fields.get("extra", {}).get("header_lacks"):
        if real.parent is not None:
            check_header(real.block, real.parent, real.chain)
        validate_result(real.block.header, real.on_witness())
        return None
    return compared(real, real.on_witness(), RESULTS)


def sealed(real: RealBlock) -> Header:
    """Returns the completed header of a block that payload attributes describe."""
    return sealed_header(real.block, real.on_witness())


def executed_on_accounts(name: str, fields: Mapping[str, Any]) -> Outcome:
    """Executes a block without tries. Checks gas, bloom and, since Byzantium, the receipts root."""
    real = RealBlock.read(name, fields)
    has_roots = schedule_of(real.block.header, real.chain).parameters["receipt_has_state_root"]
    unproved = {"stateRoot", "receiptsRoot"} if has_roots else {"stateRoot"}
    return compared(
        real,
        real.on_accounts(),
        {name: field for name, field in RESULTS.items() if name not in unproved},
    )


def compared(real: RealBlock, result: BlockResult, fields: Mapping[str, str]) -> Outcome:
    """Returns the mismatch of the first field in ``fields`` whose value differs, or None."""
    wanted = real.fields["expect"]
    found = {name: getattr(result, field) for name, field in fields.items()}
    return differing({name: wanted[name] for name in fields}, found)


def differing(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> Outcome:
    """Returns the mismatch of the first differing field; compares bytes as hex."""
    for name, value in wanted.items():
        here = found[name]
        here = "0x" + here.hex() if isinstance(here, bytes) else here
        if here != value:
            return Mismatch(f"{name} {value}", str(here))
    return None


def header_of(text: str) -> Header:
    """Decodes a header from hex RLP."""
    return Header.from_items(rlp.decode(bytes_of(text)))


def block_of(fields: Mapping[str, Any], transactions: tuple[Transaction, ...]) -> Block:
    """Returns the block of a case; without uncles if only their hashes are recorded."""
    if fields["block"]:
        return decode_block(bytes_of(fields["block"]))
    return Block(header_of(fields["header"]), transactions, (), None)


def built_header(attributes: Mapping[str, Any], parent: Header, chain: ChainConfig) -> Header:
    """Returns the header draft for payload attributes (OP Stack specification, engine API)."""
    timestamp = number_of(attributes["timestamp"])
    schedule = chain.activations.at(parent.number + 1, timestamp, after_merge=True)
    numbers = bytes_of(attributes["eip1559Params"])
    parameters = FeeParameters(
        version=int(schedule.parameters["fee_parameters_version"]),
        denominator=int.from_bytes(numbers[:4], "big"),
        elasticity=int.from_bytes(numbers[4:], "big"),
    )
    return draft_header(
        parent,
        schedule,
        timestamp=timestamp,
        coinbase=address_of(attributes["suggestedFeeRecipient"]),
        gas_limit=number_of(attributes["gasLimit"]),
        extra_data=parameters.extra_data(),
        prev_randao=bytes_of(attributes["prevRandao"]),
        parent_beacon_block_root=bytes_of(attributes["parentBeaconBlockRoot"]),
    )
