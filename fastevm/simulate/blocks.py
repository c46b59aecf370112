"""Simulated chains: blocks of calls, each on the state that the one before left."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fastevm.errors import FastevmError, InvalidBlock, InvalidTransaction
from fastevm.execution.draft import draft_header
from fastevm.execution.result import BlockResult
from fastevm.simulate.assets import asset_changes
from fastevm.simulate.call import check_prices, supplied, thread_runner, transactions_of
from fastevm.simulate.calltree import call_tree
from fastevm.simulate.deadline import WATCHDOG, out_of_time
from fastevm.simulate.environment import environment_of
from fastevm.simulate.overrides import apply_overrides
from fastevm.simulate.runner import Runner
from fastevm.simulate.values import (
    BlockOverrides,
    BlockStateCalls,
    CallExtras,
    CallFrame,
    CallOutcome,
    CallRequest,
    SimulatedBlock,
    SimulateOptions,
    SimulatePayload,
    SimulationError,
    StateView,
)
from fastevm.spec.schedule import ForkSchedule
from fastevm.types import ZERO_HASH, Block, Header, Withdrawal

MAX_BLOCKS = 256  # entries, and the distance from the base to the last block
MAX_CALLS_PER_BLOCK = 5_000
MAX_CALLS = 10_000
CAPPED = " (gas limit was capped by the RPC server's global gas cap)"


def simulate_v1(
    view: StateView, payload: SimulatePayload, options: SimulateOptions
) -> list[SimulatedBlock]:
    """Run the payload's blocks on ``view``; one result per block, fillers of number gaps included.

    Nothing runs if a number, time or limit of any entry is wrong. Raises SimulationError for those,
    for bad overrides and on timeout, InvalidTransaction for a call that breaks a rule. Source: the
    eth_simulateV1 specification of execution-apis, and go-ethereum where that is silent.
    """
    return run(view, payload, options).blocks


def simulate_touching(
    view: StateView, payload: SimulatePayload, options: SimulateOptions
) -> tuple[list[SimulatedBlock], dict[bytes, list[int]]]:
    """The same, and every account that was looked at with its slots: what a capsule holds."""
    touched: dict[bytes, set[int]] = {}
    simulation = run(view, payload, options, touched=touched)
    return simulation.blocks, {address: sorted(slots) for address, slots in touched.items()}


def run(
    view: StateView,
    payload: SimulatePayload,
    options: SimulateOptions,
    *,
    touched: dict[bytes, set[int]] | None = None,
) -> "Simulation":
    """Run all blocks before the deadline."""
    check_limits(payload)
    plan = list(planned(payload, view.header, options.block_spacing))
    simulation = Simulation(view, payload, options, touched)
    with WATCHDOG.watch(simulation.runner, options.timeout):
        try:
            simulation.blocks = [simulation.block(entry) for entry in plan]
        except FastevmError:
            if not simulation.runner.is_cancelled:
                raise
            raise out_of_time(options.timeout) from None
    return simulation


def check_limits(payload: SimulatePayload) -> None:
    """The counts that a payload must keep."""
    if len(payload.blocks) > MAX_BLOCKS:
        raise SimulationError("too_many_blocks", "too many blocks")
    total = 0
    for entry in payload.blocks:
        count = len(entry.calls)
        total += count
        if count > MAX_CALLS_PER_BLOCK:
            raise SimulationError(
                "too_many_calls", f"too many calls in block: {count} > {MAX_CALLS_PER_BLOCK}"
            )
    if total > MAX_CALLS:
        raise SimulationError("too_many_calls", f"too many calls: {total} > {MAX_CALLS}")


def planned(payload: SimulatePayload, base: Header, spacing: int) -> Iterator[BlockStateCalls]:
    """The entries with number and time filled in, and empty blocks in the gaps between them."""
    number, time = base.number, base.timestamp
    for entry in payload.blocks:
        overrides = entry.block_overrides
        wanted = number + 1 if overrides.number is None else overrides.number
        if wanted <= number:
            raise SimulationError(
                "block_numbers_order", f"block numbers must be in order: {wanted} <= {number}"
            )
        if wanted - base.number > MAX_BLOCKS:
            raise SimulationError("too_many_blocks", "too many blocks")
        for filler in range(number + 1, wanted):
            time = (time + spacing) % 2**64
            yield BlockStateCalls(block_overrides=BlockOverrides(number=filler, time=time))
        # past the last uint64 the clock begins again at zero, as go-ethereum's does
        at = (time + spacing) % 2**64 if overrides.time is None else overrides.time
        if at <= time:
            raise SimulationError(
                "block_timestamps_order", f"block timestamps must be in order: {at} <= {time}"
            )
        number, time = wanted, at
        yield replace(entry, block_overrides=replace(overrides, number=number, time=time))


class Simulation:
    """What moves on from block to block: the state, the parent, the gas left to spend."""

    def __init__(
        self,
        view: StateView,
        payload: SimulatePayload,
        options: SimulateOptions,
        touched: dict[bytes, set[int]] | None,
    ) -> None:
        self.touched = touched
        self.blocks: list[SimulatedBlock] = []
        self.payload, self.options = payload, options
        self.view = replace(view, ancestors=(view.block_hash, *view.ancestors)[:256])
        self.block_view = view
        self.parent: Header = view.header
        self.merged = bool(view.schedule.parameters["proof_of_stake"])
        self.budget = options.gas_cap or None
        self.returned = 0
        self.runner: Runner = thread_runner()

    def block(self, entry: BlockStateCalls) -> SimulatedBlock:
        """Run one planned block and move on to it."""
        overrides = entry.block_overrides
        assert overrides.number is not None and overrides.time is not None
        schedule = self.view.config.activations.at(
            overrides.number, overrides.time, after_merge=self.merged
        )
        header = drafted(
            self.parent,
            schedule,
            overrides,
            merged=self.merged,
            validation=self.payload.validation,
        )
        self.block_view = view = replace(self.view, header=header, schedule=schedule)
        environment = environment_of(header, schedule, view.config.chain_id, overrides)
        self.runner.open(
            view,
            trace_transfers=self.payload.trace_transfers,
            withdrawals=withdrawals_of(overrides, header),
            environment=environment,
        )
        apply_overrides(self.runner, entry.state_overrides)
        self.runner.begin()
        calls = tuple([self.call(request) for request in entry.calls])
        block, result = self.sealed()
        if self.touched is not None:
            for address, slots in self.runner.touched().items():
                self.touched.setdefault(address, set()).update(slots)
        self.parent = block.header
        ancestors = (block.hash, *self.view.ancestors)[:256]
        self.view = replace(self.view, layer=result.layer, ancestors=ancestors)
        senders = tuple(request.sender for request in entry.calls)
        return SimulatedBlock(block=block, calls=calls, senders=senders)

    def call(self, request: CallRequest) -> CallOutcome:
        """Run one call of the block: defaults first, then the request-wide gas budget."""
        chain_id = self.view.config.chain_id
        check_prices(request, chain_id)
        left = self.runner.gas_left
        gas = left if request.gas is None else request.gas
        if gas > left:
            raise SimulationError(
                "block_gas_limit_reached",
                f"block gas limit reached: remaining: {left}, required: {gas}",
            )
        capped = self.budget is not None and gas > self.budget
        if self.budget is not None:
            gas = min(gas, self.budget)
        nonce = self.runner.nonce(request.sender)
        executed, shown = transactions_of(request, gas, nonce, self.block_view)
        if self.payload.has_extras:
            self.runner.watch_changes()
            self.runner.trace_calls(self.payload.call_tree)
        try:
            outcome = self.runner.simulate(
                executed, validation=self.payload.validation, shown=shown
            )
        except InvalidTransaction as error:
            raise supplied(error, gas) from None
        if self.payload.has_extras:
            outcome = replace(outcome, extras=self.extras(outcome))
        self.charge(len(outcome.output))
        if self.budget is not None:
            self.budget -= outcome.gas_used
        if capped and outcome.error is not None and not outcome.reverted:
            return replace(outcome, error=outcome.error + CAPPED)
        return outcome

    def extras(self, outcome: CallOutcome) -> CallExtras:
        """What the payload asks for beyond the standard, of the call run last."""
        wanted, diff = self.payload, self.runner.changes()
        return CallExtras(
            state_diff=diff if wanted.state_diff else None,
            asset_changes=asset_changes(outcome.logs, diff) if wanted.asset_changes else None,
            access_list=self.runner.warm() if wanted.access_list else None,
            call_tree=self.tree() if wanted.call_tree else None,
        )

    def tree(self) -> CallFrame:
        """The call tree of the call run last; its data count as output."""
        frames = self.runner.frames()
        self.charge(sum([len(f.get("input", b"")) + len(f.get("output", b"")) for f in frames]))
        return call_tree(frames)

    def charge(self, size: int) -> None:
        """Count bytes that the request gives back."""
        self.returned += size
        cap = self.options.output_cap
        if cap is not None and self.returned > cap:
            raise SimulationError("output_cap", f"the calls return more than {cap} bytes")

    def sealed(self) -> tuple[Block, BlockResult]:
        """Close the block; deposit logs that nobody can read are an error of the whole request."""
        try:
            return self.runner.seal(state_root=not self.options.zero_state_root)
        except InvalidBlock as error:
            raise SimulationError("override", str(error)) from None


def drafted(
    parent: Header,
    schedule: ForkSchedule,
    overrides: BlockOverrides,
    *,
    merged: bool,
    validation: bool,
) -> Header:
    """The header before the block runs: overrides, what sticks from the parent, then rules."""
    assert overrides.time is not None
    header = draft_header(
        parent,
        schedule,
        timestamp=overrides.time,
        coinbase=chosen(overrides.fee_recipient, parent.coinbase),
        gas_limit=chosen(overrides.gas_limit, parent.gas_limit),
        prev_randao=chosen(overrides.prev_randao, ZERO_HASH),
        parent_beacon_block_root=chosen(overrides.beacon_root, ZERO_HASH),
    )
    changes: dict[str, Any] = {}
    if not merged:
        changes["difficulty"] = chosen(overrides.difficulty, parent.difficulty)
    if header.base_fee_per_gas is not None:
        default = header.base_fee_per_gas if validation else 0
        changes["base_fee_per_gas"] = chosen(overrides.base_fee_per_gas, default)
    return replace(header, **changes)


def withdrawals_of(overrides: BlockOverrides, header: Header) -> tuple[Withdrawal, ...] | None:
    """The block's withdrawals; None before there were any."""
    if header.withdrawals_root is None:
        return None
    return overrides.withdrawals or ()


def chosen(override: Any, default: Any) -> Any:
    return default if override is None else override
