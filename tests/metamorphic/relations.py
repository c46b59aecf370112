"""Compares two runs of a case under circumstances that must not change the result.

The circumstances are pauses, tracing, fetched state, snapshots, exported state, and slices. Each
function describes the difference between two runs, or returns None if they are equal.
"""

from collections.abc import Callable
from typing import Any

from fastevm.core.execution.block.block import BlockBuilder
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import EMPTY_ROOT, ZERO_HASH, Header
from fastevm.core.interpreter.tracer import StepTrace
from fastevm.core.spec.schedule import schedule_for
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidTransaction
from fastevm.evm.machine import EVM
from fastevm.testing.execution import TransactionRunner
from tests.differential.cases import Case
from tests.differential.compare import difference, state_difference
from tests.differential.machine import (
    block_of,
    dump,
    evm_of,
    prepare,
    run,
    run_transaction,
    state_of,
    transaction_of,
    unhexed,
    with_signatures,
)

NOBODY = bytes(20)
# size of a trace buffer that fills at nearly every step
SMALL_TRACE = 2000

Done = list[dict[str, Any] | str]


def executed(
    case: Case, *, records: list[Any] | None = None, **options: Any
) -> tuple[Done, dict[str, Any], bytes]:
    """Runs the case's transactions on a layer. Returns outcomes, final state and state root.

    Trace records are appended to ``records``.
    """
    schedule = schedule_for(case.fork)
    runner = TransactionRunner(
        state_of(case.pre), schedule, block=block_of(case, schedule), **options
    )
    done: Done = []
    for fields in case.transactions:
        try:
            done.append(runner.run(transaction_of(fields)))
        except InvalidTransaction as refusal:
            done.append(str(refusal))
    if records is not None:
        records += runner.records
    return done, dump(runner.layer), runner.layer.state_root()


def unlike(item: tuple[Done, Any, bytes], other: tuple[Done, Any, bytes]) -> str | None:
    """Describes how two runs differ, or returns None if they are equal."""
    for number, (first, second) in enumerate(zip(item[0], other[0], strict=True)):
        if first != second:
            if isinstance(first, str) or isinstance(second, str):
                return f"transaction {number} is {first}, then {second}"
            aspect = next(name for name in first if first[name] != second[name])
            return f"{aspect} of transaction {number} is {first[aspect]}, then {second[aspect]}"
    if item[1] != other[1]:
        return state_difference(item[1], other[1])
    return None if item[2] == other[2] else f"root is {item[2].hex()}, then {other[2].hex()}"


def suspended(case: Case) -> str | None:
    """Compares a run that pauses before every opcode that needs its caller with an ordinary run."""
    usual = executed(case)
    return unlike(usual, executed(case, suspend=True)) or unlike(
        usual, executed(case, suspend=True, stepped=True)
    )


def fetched(case: Case) -> str | None:
    """Compares a run that fetches the state value by value with an ordinary run."""
    usual = executed(case)
    return unlike(usual, executed(case, remote=True)) or unlike(
        usual, executed(case, remote=True, stepped=True, suspend=True)
    )


def traced(case: Case) -> str | None:
    """Compares a traced with an untraced run.

    No record may be lost when the trace buffer is full.
    """
    usual = executed(case)
    everything = StepTrace(calls=True, memory=True, return_data=True)
    whole, parts = StepTrace(calls=True), StepTrace(calls=True, limit=SMALL_TRACE)
    item: list[Any] = []
    other: list[Any] = []
    found = (
        unlike(usual, executed(case, trace=everything, stepped=True))
        or unlike(usual, executed(case, trace=whole, records=item, stepped=True))
        or unlike(usual, executed(case, trace=parts, records=other, stepped=True, suspend=True))
    )
    if found or item + whole.drain() == other + parts.drain():
        return found
    return "the records of a small buffer are not those of a large one"


def reused(case: Case) -> str | None:
    """Compares a machine that has run other cases with a fresh machine."""
    fresh = prepare(case, EVM(case.fork))
    outcomes = [run_transaction(fresh, fields) for fields in case.transactions]
    root = "0x" + fresh.state.state_root().hex()
    ours = {"transactions": outcomes, "state": dump(fresh.state), "root": root}
    return difference(run(case), ours)


def rolled_back(case: Case) -> str | None:
    """Checks that calls change nothing, and that a snapshot restores the state after transactions.

    Then compares the transactions' outcomes with those on a machine without snapshot.
    """
    evm = prepare(case, evm_of(case.fork))
    before, root = dump(evm.state), evm.state.state_root()
    for address in case.pre:
        evm.call(address, b"\1" * 36, sender=NOBODY, gas=100_000)
    if dump(evm.state) != before:
        return f"calls changed the state: {state_difference(before, dump(evm.state))}"
    with evm.snapshot():
        for fields in case.transactions:
            run_transaction(evm, fields)
            evm.state.state_root()
    if dump(evm.state) != before or evm.state.state_root() != root:
        return "the snapshot was not what came back"
    outcomes = [run_transaction(evm, fields) for fields in case.transactions]
    again = {"transactions": outcomes, "state": dump(evm.state),
             "root": "0x" + evm.state.state_root().hex()}  # fmt: skip
    return difference(run(case), again)


def exported(case: Case) -> str | None:
    """Checks that a state that is exported and imported again has equal accounts and root."""
    evm = prepare(case, evm_of(case.fork))
    evm.state.state_root()
    for fields in case.transactions:
        run_transaction(evm, fields)
        copy = Layer.of(account_fields(evm.state))
        root, same = evm.state.state_root(), copy.state_root()
        if root != same:
            return f"root is {root.hex()}, that of a copy {same.hex()}"
        if dump(copy) != dump(evm.state):
            return f"a copy differs: {state_difference(dump(evm.state), dump(copy))}"
    return None


def account_fields(layer: Layer) -> dict[bytes, dict[str, Any]]:
    """Returns all accounts of a layer, in the format of `Layer.of`."""
    fields = {}
    for address in layer.addresses():
        account = layer.account(address)
        assert account is not None
        fields[address] = {
            "balance": account.balance,
            "nonce": account.nonce,
            "code": layer.code(address),
            "storage": layer.storage_items(address),
        }
    return fields


def header_of(case: Case) -> Header:
    """Returns a draft header with the block values of the case."""
    block, rules = case.block, schedule_for(case.fork).parameters
    return Header(
        coinbase=unhexed(block["coinbase"]),
        difficulty=block["difficulty"],
        number=block["number"],
        gas_limit=block["gas_limit"],
        timestamp=block["timestamp"],
        mix_hash=block["prev_randao"].to_bytes(32, "big"),
        base_fee_per_gas=block["base_fee"] if rules["has_base_fee"] else None,
        withdrawals_root=EMPTY_ROOT if rules["has_withdrawals"] else None,
        blob_gas_used=0 if rules["has_blobs"] else None,
        excess_blob_gas=block["excess_blob_gas"] if rules["has_blobs"] else None,
        parent_beacon_block_root=ZERO_HASH if rules["has_beacon_root"] else None,
        requests_hash=ZERO_HASH if rules["has_requests"] else None,
    )


def built(case: Case, *, slices: bool) -> tuple[list[Any], Layer]:
    """Builds a block. Returns its receipts and the state after it.

    ``slices``: commits the state after each transaction instead of at the end.
    """
    builder = BlockBuilder(
        state_of(case.pre), header_of(case), schedule_for(case.fork), chain_id=1,
        deposit_contract=NOBODY,
    )  # fmt: skip
    builder.begin()
    done: list[Any] = []
    for fields in with_signatures(case).transactions:
        try:
            done.append(builder.add(Transaction.decode(unhexed(fields["raw"]))))
        except InvalidTransaction as refusal:
            done.append(str(refusal))
        if slices:
            builder.snapshot().state_root()
    return done, builder.snapshot()


def sliced(case: Case) -> str | None:
    """Compares a block committed after each transaction with a block committed at the end."""
    whole, layer = built(case, slices=False)
    parts, sliced_layer = built(case, slices=True)
    if whole != parts:
        return f"receipts are {whole}, in slices {parts}"
    if layer.state_root() != sliced_layer.state_root() or dump(layer) != dump(sliced_layer):
        return f"the state differs: {state_difference(dump(layer), dump(sliced_layer))}"
    return None


RELATIONS: tuple[Callable[[Case], str | None], ...] = (
    suspended, fetched, traced, reused, rolled_back, exported, sliced,
)  # fmt: skip


def broken_relation(case: Case) -> str | None:
    """Describes the first relation that does not hold for the case, or returns None."""
    for relation in RELATIONS:
        found = relation(case)
        if found:
            return f"{relation.__name__}: {found}"
    return None
