"""``fastevm t8n``: runs the transactions of a block on a given state (state-transition tool)."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct

from fastevm.chain.config import MAINNET_DEPOSIT_CONTRACT
from fastevm.chain.dao_fork import apply_dao_fork
from fastevm.cli import options as command
from fastevm.cli.options import CONFIG_FAULT, EVM_FAULT, IO_FAULT, Options, ToolError
from fastevm.cli.reading import Environment, Inputs, transactions_of
from fastevm.cli.writing import Outputs, Transition, alloc_json, body_hex, result_json
from fastevm.core.execution.block.block_result import BlockResult
from fastevm.core.execution.block.roots import ordered_root
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Header, Receipt
from fastevm.core.primitives.bloom import merge_blooms
from fastevm.core.simulation.values import SimulationError, StateView
from fastevm.core.spec.activation import NETWORK_FORKS, activations_named
from fastevm.core.spec.schedule import ForkSchedule, schedule_for
from fastevm.core.state.layer import Layer
from fastevm.errors import FastevmError, InvalidBlock, InvalidTransaction, UnknownForkError
from fastevm.tracing.observer import Observer, observer_of
from fastevm.tracing.opcode_counter import OpcodeCounter
from fastevm.tracing.runner import TracedRunner
from fastevm.tracing.step_loggers import Eip3155Logger

add_arguments = command.add_arguments

NO_REWARD: Final = -1
OMMER_REACH: Final = 8  # maximum distance of uncles (Yellow Paper, section 11.3)
NEPHEW_SHARE: Final = 32


class Rules(Struct, frozen=True):
    """The chain id and the address of the deposit contract."""

    chain_id: int
    deposit_contract: bytes = MAINNET_DEPOSIT_CONTRACT


class Builder(TracedRunner):
    """A block with the reward given on the command line."""

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

    0: success, 2: execution failed, 3: invalid configuration, 10: invalid JSON, 11: a file cannot
    be read or written, 12: invalid RLP.
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
        print(f"ERROR({error.code}): {error}", file=sys.stderr)
        return error.code
    except FastevmError as error:
        print(f"ERROR({EVM_FAULT}): {error}", file=sys.stderr)
        return EVM_FAULT
    return 0


def transitioned(options: Options, folder: Path) -> Transition:
    """Runs the block that the options describe; writes traces to the folder."""
    inputs = Inputs(options)
    accounts, given = inputs.accounts(), inputs.read("env")
    transactions = inputs.read("txs")
    env = Environment(given if isinstance(given, dict) else {})
    layer = Layer.of(accounts)
    schedule, dao = _schedule(options, inputs, env)
    builder, header = Builder(), env.header(schedule)
    builder.reward = options["state.reward"]
    if builder.reward < NO_REWARD:
        raise ToolError(CONFIG_FAULT, f"state.reward: {builder.reward} is less than -1")
    view = StateView(
        header=header,
        block_hash=header.parent_hash,
        layer=apply_dao_fork(layer) if dao else layer,
        ancestors=env.ancestors(),
        schedule=schedule,
        config=Rules(options["state.chainid"]),
    )
    builder.open(view, withdrawals=env.withdrawals(schedule))
    builder.uncles = env.ommers()
    builder.begin()
    counter = OpcodeCounter() if options["opcode.count"] else None
    listed = transactions_of(transactions, schedule, options["state.chainid"])
    rejected = _run_all(builder, listed, options, folder, counter)
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
    try:
        activations = activations_named(options["state.fork"], blob_schedule=given)
    except (UnknownForkError, ValueError) as error:
        raise ToolError(CONFIG_FAULT, f"failed constructing chain configuration: {error}") from None
    schedule = activations.at(number, env.required("currentTimestamp"))
    if blobs is not None:
        schedule = schedule_for(schedule.fork, blobs=blobs)
    return schedule, activations.dao_block == number


def _run_all(
    builder: Builder,
    transactions: Iterable[Transaction | str],
    options: Options,
    folder: Path,
    counter: OpcodeCounter | None,
) -> list[tuple[int, str]]:
    """Includes the valid transactions. Returns index and reason of each rejected one.

    ``counter`` counts the executed opcodes.
    """
    rejected = []
    for position, transaction in enumerate(transactions):
        if isinstance(transaction, str):
            rejected.append((position, transaction))
            continue
        try:
            if options["trace"]:
                _add_traced(builder, transaction, options, folder, counter)
            elif counter is not None:
                builder.add_traced(transaction, counter)
            else:
                builder.add(transaction)
        except InvalidTransaction as error:
            rejected.append((position, error.message))
    return rejected


def _add_traced(
    builder: Builder,
    transaction: Transaction,
    options: Options,
    folder: Path,
    counter: OpcodeCounter | None,
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
            observers: list[Observer] = [logger] if counter is None else [logger, counter]
            builder.add_traced(transaction, observer_of(observers))
            logger.flush()
    except InvalidTransaction:
        path.unlink()
        raise
    except OSError as error:
        raise ToolError(IO_FAULT, f"failed writing trace: {error}") from None


def _finished(builder: Builder) -> tuple[BlockResult, str | None]:
    """Ends the block. If its requests are invalid, returns the executed block and the reason."""
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
