"""Block production and timestamps of a development chain.

Names, parameter forms and answers are those of anvil, Hardhat and Ganache.
"""

from typing import Any, Final

from fastevm.core.primitives.hex import quantity
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.registry import Needs, Param, method
from fastevm.rpc.dispatch.workers import is_stopped, require_worker
from fastevm.rpc.errors import RpcError
from fastevm.rpc.methods.development import (
    NUMBER,
    OPTIONAL_NUMBER,
    attempt,
    control,
    decode_number,
    methods,
    setters,
    short_methods,
    short_setters,
)
from fastevm.rpc_types.quantity import object_fault
from fastevm.rpc_types.transactions import Json

MAX_DETAILED: Final = 1_000  # most blocks in an answer of evm_mine_detailed


def decode_mine(value: Any) -> dict[str, int]:
    """Decode the parameter of evm_mine: a timestamp, or an object with timestamp and blocks."""
    if not isinstance(value, dict):
        return {"timestamp": decode_number(value)}
    members = {name: value[name] for name in ("timestamp", "blocks") if value.get(name) is not None}
    return {name: decode_number(member) for name, member in members.items()}


def decode_switch(value: Any) -> bool:
    """Decode a boolean."""
    if not isinstance(value, bool):
        raise object_fault(value, "bool")
    return value


def decode_seconds(value: Any) -> float:
    """Decode seconds: a JSON number (fractions allowed) or a quantity."""
    return value if isinstance(value, float) else decode_number(value)


MINE: Final = Param(decode_mine, optional=True)
SWITCH: Final = Param(decode_switch)


@short_methods(["evm_mine"], MINE)
def evm_mine(context: Context, wanted: dict[str, int] | None) -> str:
    """Mine one or several blocks, the first with the given timestamp. Returns 0x0."""
    _mine(context, wanted)
    return quantity(0)


@methods(["evm_mine_detailed", "anvil_mine_detailed", "anvil_mineDetailed"], MINE)
def mine_detailed(context: Context, wanted: dict[str, int] | None) -> list[Json]:
    """Mine blocks as evm_mine does. Returns the blocks with their transactions."""
    if (wanted or {}).get("blocks", 1) > MAX_DETAILED:
        raise RpcError("invalid_params", f"blocks: at most {MAX_DETAILED} in one answer")
    return [context.view_of(block).block_json(full=True) for block in _mine(context, wanted)]


def _mine(context: Context, wanted: dict[str, int] | None) -> Any:
    found = wanted or {}
    timestamp, count = found.get("timestamp"), found.get("blocks", 1)
    require_worker_above_one_empty_block(context, count)
    return attempt(control(context).mine, count, timestamp=timestamp, is_stopped=is_stopped)


def require_worker_above_one_empty_block(context: Context, count: int) -> None:
    """Raise NeedsWorker on the event loop unless the call mines a single empty block."""
    if count > 1 or context.node.pool.executable_count:
        require_worker(is_long=True)


@short_setters(["anvil_mine", "hardhat_mine"], OPTIONAL_NUMBER, OPTIONAL_NUMBER)
def mine(context: Context, count: int | None, interval: int | None) -> None:
    """Mine ``count`` blocks (default 1), with ``interval`` seconds between timestamps."""
    wanted = 1 if count is None else count
    require_worker_above_one_empty_block(context, wanted)
    attempt(control(context).mine, wanted, interval=interval, is_stopped=is_stopped)


@short_methods(["evm_increaseTime", "anvil_increaseTime"], NUMBER)
def increase_time(context: Context, seconds: int) -> int:
    """Move the chain's clock forward. Returns the offset from the system clock in seconds."""
    ahead: int = attempt(control(context).time.increase, seconds)
    return ahead


@short_methods(["evm_setTime", "anvil_setTime"], NUMBER)
def set_time(context: Context, timestamp: int) -> int:
    """Set the chain's clock, in Unix seconds or milliseconds. Returns the change in seconds."""
    forward: int = attempt(control(context).time.set, timestamp)
    return forward


@short_methods(
    ["evm_setNextBlockTimestamp", "anvil_setNextBlockTimestamp", "testing_timeTravel"], NUMBER
)
def set_next_block_timestamp(context: Context, timestamp: int) -> None:
    """Set the timestamp of the next block. The clock continues from there."""
    attempt(control(context).time.set_next, timestamp)


@setters(["anvil_setBlockTimestampInterval"], NUMBER)
def set_timestamp_interval(context: Context, seconds: int) -> None:
    """Set the timestamp of each block to the parent's timestamp plus ``seconds``."""
    attempt(control(context).time.set_interval, seconds)


@setters(["hardhat_setBlockTimestampInterval"], NUMBER)
def set_timestamp_interval_of_hardhat(context: Context, milliseconds: int) -> None:
    """Set the timestamp of each block to the parent's plus ``milliseconds``, which viem sends."""
    seconds, rest = divmod(milliseconds, 1_000)
    if rest:
        raise RpcError("invalid_params", "the interval must be whole seconds, in milliseconds")
    attempt(control(context).time.set_interval, seconds)


@methods(["anvil_removeBlockTimestampInterval", "hardhat_removeBlockTimestampInterval"])
def remove_timestamp_interval(context: Context) -> bool:
    """Use the clock for timestamps again. Returns whether there was an interval."""
    return control(context).time.set_interval(None)


@setters(["evm_setAutomine", "anvil_setAutomine"], SWITCH)
def set_automine(context: Context, wanted: bool) -> None:
    """Start or stop mining a block for each transaction. Starting replaces an interval."""
    control(context).miner.set_automine(wanted)


@setters(["miner_start"], Param(lambda value: value, optional=True))
def miner_start(context: Context, threads: Any) -> None:
    """Start mining a block for each transaction."""
    control(context).miner.set_automine(True)


@setters(["miner_stop"])
def miner_stop(context: Context) -> None:
    """Stop mining. Afterwards only requests such as evm_mine build blocks."""
    control(context).miner.set_interval(None)


@setters(["evm_setIntervalMining", "anvil_setIntervalMining"], Param(decode_seconds))
def set_interval_mining(context: Context, seconds: float) -> None:
    """Mine a block every ``seconds``, not for each transaction. 0 stops interval mining."""
    attempt(control(context).miner.set_interval, seconds)


@method("anvil_getIntervalMining", needs=Needs.OWN_BLOCKS)
def get_interval_mining(context: Context) -> float | None:
    """Return the mining interval in seconds; null without interval mining."""
    found = control(context).miner.interval
    return int(found) if found is not None and found.is_integer() else found


def get_automine(context: Context) -> bool:
    """Return whether the node mines a block for each transaction."""
    return control(context).miner.automine


def is_mining(context: Context) -> bool:
    """Return whether the node mines for each transaction or at an interval."""
    return context.node.development.mines


for _name in ("anvil_getAutomine", "hardhat_getAutomine"):
    method(_name, needs=Needs.OWN_BLOCKS)(get_automine)
method("eth_mining")(is_mining)
