"""Runs one payload of eth_simulateV1 on any state, from Python."""

from inspect import signature
from typing import Any, Unpack

from fastevm.core.simulation.deadline import Deadline
from fastevm.core.simulation.simulated_blocks import simulate_v1
from fastevm.core.simulation.values import (
    DEFAULT_GAS_CAP,
    DEFAULT_TIMEOUT,
    SimulatedBlock,
    SimulateOptions,
    SimulationError,
)
from fastevm.errors import FastevmError
from fastevm.evm.signatures import show_fields
from fastevm.rpc_types.positions import refused_call
from fastevm.rpc_types.simulate_request import payload_from
from fastevm.simulate.views import BLOCK_OPTIONS, BlockOptions, as_view, spacing_of


def simulate(
    state: Any,
    payload: Any,
    *,
    state_root: bool = True,
    block_spacing: int | None = None,
    gas_cap: int = DEFAULT_GAS_CAP,
    timeout: float = DEFAULT_TIMEOUT,
    **block: Unpack[BlockOptions],
) -> list[SimulatedBlock]:
    """Runs a payload of eth_simulateV1 on ``state``. Returns one result for each block.

    ``state`` does not change. It is a Layer, an EVM, or a StateView (a block of a chain).

    - ``payload``: the JSON form with hex text (or ints and bytes), a list of calls for one block,
      or a `SimulatePayload`
    - ``state_root``: if False, headers have 32 zero bytes instead of the computed root, which saves
      most of the time of an empty block
    - ``block_spacing``: seconds between blocks, by default the chain's block time
    - ``gas_cap``: maximum gas of all calls together (0: no limit)
    - ``timeout``: seconds
    - ``block``: for a Layer, fields of the first block, see `fastevm.simulate.views.as_view`

    Raises SimulationError for an invalid payload and on timeout, InvalidTransaction for an invalid
    call, and ValueError for values that cannot be decoded. Their messages begin with the path of
    the value: ``blockStateCalls[2].calls[5].value: ...``. A call that reverts or halts is a result.
    """
    view = as_view(state, **block)
    typed = payload_from(payload)
    if not typed.blocks:
        raise SimulationError("empty_input", "empty input")
    options = SimulateOptions(
        zero_state_root=not state_root,
        block_spacing=spacing_of(view) if block_spacing is None else block_spacing,
        gas_cap=gas_cap,
        timeout=timeout,
    )
    try:
        blocks = simulate_v1(view, typed, options)
    except FastevmError as error:
        raise refused_call(error, payload) from None
    # a subclass of EVM may define it to be notified of simulations
    hear = getattr(state, "on_simulation", None)
    if hear is not None:
        hear(typed)
    return blocks


class SimulationOptions(BlockOptions, total=False):
    """The keyword arguments of `simulate`."""

    state_root: bool
    block_spacing: int | None
    gas_cap: int
    timeout: float


async def simulate_async(
    state: Any, payload: Any, **options: Unpack[SimulationOptions]
) -> list[SimulatedBlock]:
    """Runs `simulate` in a thread, so that the event loop continues.

    Options and errors: see `simulate`.

    Cancelling the task that awaits the result stops the run.
    """
    # imported here, because it is slow; an asynchronous caller has already imported it
    from asyncio import to_thread

    deadline = Deadline()

    def run() -> list[SimulatedBlock]:
        with deadline.active():
            return simulate(state, payload, **options)

    try:
        return await to_thread(run)
    finally:
        deadline.cancel()


show_fields(simulate, dict.fromkeys(BLOCK_OPTIONS))
show_fields(
    simulate_async,
    {
        name: each.default
        for name, each in signature(simulate).parameters.items()
        if each.kind is each.KEYWORD_ONLY
    },
)
