"""``fastevm t8n``: runs the transactions of a block on a given state (state-transition tool)."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from fastevm.chain.config import MAINNET_DEPOSIT_CONTRACT
from fastevm.chain.dao_fork import apply_dao_fork
from fastevm.cli import options as command
from fastevm.cli.options import (
    CONFIG_FAULT,
    EVM_FAULT,
    IO_FAULT,
    Options,
    ToolError,
)
from fastevm.cli.reading import Environment, Inputs, transactions_of
from fastevm.cli.writing import Outputs, Transition, alloc_json, body_hex, result_json
from fastevm.core.execution.block.block_result import BlockResult
from fastevm.core.execution.block.roots import ordered_root
from fastevm.core.execution.transaction.sidecar import BLOB_TX_TYPE
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Header, Receipt
from fastevm.core.primitives.bloom import merge_blooms
from fastevm.core.simulation.values import SimulationError, StateView
from fastevm.core.spec.activation import NETWORK_FORKS, activations_named
from fastevm.core.spec.schedule import ForkSchedule, schedule_for
from fastevm.core.state.layer import Layer
from fastevm.errors import (
    FastevmError,
    InvalidBlock,
    InvalidTransaction,
    UnknownForkError,
    error_text,
)
from fastevm.tracing.block_hash_observer import BlockHashObserver
from fastevm.tracing.observer import Observer, observer_of
from fastevm.tracing.opcode_counter import OpcodeCounter
from fastevm.tracing.runner import TracedRunner
from fastevm.tracing.step_loggers import Eip3155Logger

add_arguments = command.add_arguments

NO_REWARD: Final = -1
OMMER_REACH: Final = 8  # maximum distance of uncles (Yellow Paper, section 11.3)
NEPHEW_SHARE: Final = 32
# Codes of rejections -> types in go-ethereum.
CREATIONS_REFUSED: Final = {"blob_create": "types.BlobTx", "set_code_create": "types.SetCodeTx"}


class Rules(Struct, frozen=True):
    """The chain id and the address of the deposit contract."""

    chain_id: int
    deposit_contract: bytes = MAINNET_DEPOSIT_CONTRACT


class Builder(TracedRunner):
    """Builds the block. The reward comes from the command line."""

    reward = 0
    uncles: tuple[Header, ...] = ()

    def rewards(self, draft: Block) -> list[tuple[bytes, int]]:
        """Returns the rewards of the miner and of the uncles' miners; none under proof of stake."""
        if self.reward == NO_REWARD or self.schedule.parameters["proof_of_stake"]:
            return []
        number, reward = draft.number, self.reward
        share = reward + len(self.uncles) * (reward // NEPHEW_SHARE)
        uncles = [
            (uncle.coinbase, (OMMER_REACH + uncle.number - number) * reward // OMMER_REACH)
            for uncle in self.uncles
        ]
        return [(draft.header.coinbase, share), *uncles]


def run(arguments: argparse.Namespace) -> int:
    """Reads the input, runs the block, writes the output. Returns the exit code.

    The codes are 0: success; 2: execution failed; 3: invalid configuration; 4: BLOCKHASH read a
    block hash that the environment lacks; 10: invalid JSON; 11: a file cannot be read or written;
    12: invalid RLP.
    """
    options = Options(vars(arguments))
    try:
        outputs = Outputs(options)
        transition = transitioned(options, outputs.folder)
        outputs.put("output.alloc", alloc_json(transition.result.layer))
        outputs.put("output.result", result_json(transition))
        outputs.put("output.body", body_hex(transition.transactions))
        if transition.opcodes is not None:
            outputs.put("opcode.count", transition.opcodes)
        outputs.close()
    except ToolError as error:
        print(f"ERROR({error.code}): {error_text(error)}", file=sys.stderr)
        return error.code
    except FastevmError as error:
        print(f"ERROR({EVM_FAULT}): {error_text(error)}", file=sys.stderr)
        return EVM_FAULT
    return 0


def transitioned(options: Options, folder: Path, stdin: dict[str, Any] | None = None) -> Transition:
    """Runs the block that the options describe. Writes the traces to the folder.

    ``stdin``: the decoded standard input; None reads standard input.
    """
    inputs = Inputs(options, stdin)
    accounts, given = inputs.accounts(), inputs.read("env")
    transactions = inputs.read("txs")
    env = Environment(given if isinstance(given, dict) else {})
    layer = Layer.of(accounts)
    schedule, dao = _schedule(options, inputs, env)
    header, reward = env.header(schedule), options["state.reward"]
    if reward < NO_REWARD:
        raise ToolError(CONFIG_FAULT, f"state.reward: {reward} is less than -1")
    view = StateView(
        header=header,
        block_hash=header.parent_hash,
        layer=apply_dao_fork(layer) if dao else layer,
        ancestors=env.ancestors(),
        schedule=schedule,
        config=Rules(options["state.chainid"]),
    )
    withdrawals, ommers = env.withdrawals(schedule), env.ommers()

    def begun() -> Builder:
        builder = Builder()
        builder.reward, builder.uncles = reward, ommers
        builder.open(view, withdrawals=withdrawals)
        builder.begin()
        return builder

    builder = begun()
    counter = OpcodeCounter() if options["opcode.count"] else None
    listed = list(transactions_of(transactions, schedule, options["state.chainid"]))
    if schedule.parameters["has_blobs"] and not env.knows_excess_blob_gas():
        listed = [_without_blobs(transaction) for transaction in listed]
    as_rlp = isinstance(transactions, str)
    rejected = _run_all(builder, listed, options, folder, counter, as_rlp=as_rlp)
    known = env.known_block_hashes()
    if not known.issuperset(builder.block_hash_range()):  # an unknown hash may have been read
        observer = BlockHashObserver(header.number, known)
        _run_all(begun(), listed, options, folder, observer, as_rlp=as_rlp)
        env.refuse_block_hash(observer.missing)
    result, fault = _finished(builder)
    base_fee = header.base_fee_per_gas
    return Transition(
        schedule, header, builder.transactions, result, rejected, builder.withdrawals, fault,
        env.number("currentBaseFee") if base_fee is None else base_fee,
        env.knows_excess_blob_gas(), None if counter is None else counter.counts(),
    )  # fmt: skip


def _schedule(options: Options, inputs: Inputs, env: Environment) -> tuple[ForkSchedule, bool]:
    """Returns the rules, and whether this is the block of the DAO fork."""
    number = env.required("currentNumber")
    blobs = inputs.blob_parameters()
    given = {} if blobs is None else {fork.name.casefold(): blobs for fork in NETWORK_FORKS}
    name, _, added = options["state.fork"].partition("+")
    try:
        activations = activations_named(name, blob_schedule=given)
    except (UnknownForkError, ValueError) as error:
        raise ToolError(CONFIG_FAULT, f"failed constructing chain configuration: {error}") from None
    if added:
        raise ToolError(
            CONFIG_FAULT,
            f"failed constructing chain configuration: {options['state.fork']}: "
            "adding EIPs to a fork is not supported",
        )
    schedule = activations.at(number, env.required("currentTimestamp"))
    if blobs is not None:
        schedule = schedule_for(schedule.fork, blobs=blobs)
    return schedule, activations.dao_block == number


def _without_blobs(transaction: Transaction | str) -> Transaction | str:
    """Returns the reason to reject a blob transaction. Returns any other transaction unchanged."""
    if isinstance(transaction, Transaction) and transaction.type == BLOB_TX_TYPE:
        return "blob tx used but field env.ExcessBlobGas missing"
    return transaction


def _run_all(
    builder: Builder,
    transactions: Iterable[Transaction | str],
    options: Options,
    folder: Path,
    observer: Observer | None,
    *,
    as_rlp: bool,
) -> list[tuple[int, str]]:
    """Includes the valid transactions.

    Returns the index and the reason of each rejected transaction.
    """
    rejected = []
    for position, transaction in enumerate(transactions):
        if isinstance(transaction, str):
            rejected.append((position, transaction))
            continue
        try:
            if options["trace"]:
                _add_traced(builder, transaction, options, folder, observer)
            elif observer is not None:
                builder.add_traced(transaction, observer)
            else:
                builder.add(transaction)
        except InvalidTransaction as error:
            rejected.append((position, _rejection(error, as_rlp=as_rlp)))
    return rejected


def _rejection(error: InvalidTransaction, *, as_rlp: bool) -> str:
    """Returns the reason of a rejection with the text of go-ethereum's tool.

    That tool refuses contract creations by blob and set-code transactions when it decodes them.
    Fillers compare this text.
    """
    kind = CREATIONS_REFUSED.get(error.code)
    if kind is None:
        return error.message
    path = f"(types.Transaction)({kind})" if as_rlp else f"({kind})"
    return f"rlp: input string too short for common.Address, decoding into {path}.To"


def _add_traced(
    builder: Builder,
    transaction: Transaction,
    options: Options,
    folder: Path,
    observer: Observer | None,
) -> None:
    """Runs a transaction and writes its trace to a file; a rejected transaction leaves no file."""
    index = len(builder.transactions)
    path = folder / f"trace-{index}-0x{transaction.hash.hex()}.jsonl"
    try:
        with path.open("w") as file:
            logger = Eip3155Logger(
                file,
                stack=not options["trace.nostack"],
                memory=options["trace.memory"] and not options["trace.nomemory"],
                return_data=options["trace.returndata"] and not options["trace.noreturndata"],
            )
            observers: list[Observer] = [logger] if observer is None else [logger, observer]
            builder.add_traced(transaction, observer_of(observers))
            logger.flush()
    except InvalidTransaction:
        path.unlink()
        raise
    except OSError as error:
        raise ToolError(IO_FAULT, f"failed writing trace: {error}") from None


def _finished(builder: Builder) -> tuple[BlockResult, str | None]:
    """Ends the block. Returns the executed block, and the reason if its requests are invalid."""
    try:
        return builder.finish(), None
    except (InvalidBlock, SimulationError) as error:
        return _broken(builder), str(error)


def _broken(builder: Builder) -> BlockResult:
    receipts: tuple[Receipt, ...] = builder.receipts
    layer = builder.snapshot()
    return BlockResult(
        layer=layer,
        state_root=layer.state_root(),
        receipts=receipts,
        receipts_root=ordered_root([receipt.rlp() for receipt in receipts]),
        logs_bloom=merge_blooms(receipt.bloom for receipt in receipts),
        gas_used=builder.gas_used,
        blob_gas_used=builder.blob_gas_used if builder.schedule.parameters["has_blobs"] else None,
    )
