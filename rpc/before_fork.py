"""Forwards calls about the fork block and earlier blocks to the upstream, which has these blocks.

A handler that needs such a block raises `HeldUpstream`. The runner then forwards the call, from a
worker thread and with the params that the client sent.
"""

from typing import Any, Final

from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.errors import ForkError
from fastevm.node import ForkHistory
from fastevm.rpc.block_id import decode_block, decode_number_or_tag, decode_number_tag_or_int
from fastevm.rpc.dispatch.registry import Method
from fastevm.rpc.dispatch.workers import require_worker
from fastevm.rpc.errors import RpcError
from fastevm.rpc.log_filter import LogFilter
from fastevm.rpc_client.messages import RpcRefusal
from fastevm.rpc_types.transactions import Json

BLOCK_DECODERS: Final = (decode_block, decode_number_or_tag, decode_number_tag_or_int)

# Methods whose results name a block. If the upstream's result names a block above the fork block,
# that block is not part of this chain, and the method returns null.
TELL_BLOCK: Final = ("eth_getTransactionByHash", "eth_getTransactionReceipt")


class HeldUpstream(Exception):
    """Raised for a call about the fork block or an earlier block.

    ``block`` is the text that replaces the block parameter, None if the parameter stays unchanged.
    """

    def __init__(self, block: str | None = None) -> None:
        super().__init__()
        self.block = block


def forwarded(history: ForkHistory, method: Method, params: list[Any], held: HeldUpstream) -> Any:
    """Return the upstream's answer to a call. Blocks the thread. Raises RpcError."""
    require_worker(is_long=True)
    if held.block is not None:
        params = _with_block(method, params, held.block)
    found = requested(history, method.name, params)
    if method.name in TELL_BLOCK and not _is_of_fork(found, history.number):
        return None
    return found


def requested(history: ForkHistory, name: str, params: list[Any]) -> Any:
    """Call a method of the upstream. Raises RpcError with the upstream's message if it refuses."""
    try:
        return history.request(name, params)
    except RpcRefusal as error:
        raise RpcError("upstream", error.message, data=error.data, code=error.code) from None


def logs_upstream(history: ForkHistory, wanted: LogFilter, first: int, last: int) -> list[Json]:
    """Return the upstream's logs of blocks ``first`` to ``last``.

    The caller must not ask for blocks above the fork block.
    """
    block_range = {"fromBlock": quantity(first), "toBlock": quantity(last)}
    return _logs(history, block_range | _choices(wanted))


def logs_of_block_upstream(
    history: ForkHistory, wanted: LogFilter, block_hash: bytes
) -> list[Json]:
    """Return the upstream's logs of a block. Raises RpcError if the block is unknown."""
    block = {"blockHash": hex_bytes(block_hash)}
    return _logs(history, block | _choices(wanted))


def _logs(history: ForkHistory, wanted: Json) -> list[Json]:
    found = requested(history, "eth_getLogs", [wanted])
    if not isinstance(found, list) or not all(isinstance(log, dict) for log in found):
        raise ForkError(
            f"{history.name}: eth_getLogs: expected a list of logs, found {found!r:.60}"
        )
    return found


def _choices(wanted: LogFilter) -> Json:
    topics = [[hex_bytes(item) for item in sorted(position)] or None for position in wanted.topics]
    answer: Json = {"topics": topics} if topics else {}
    if wanted.addresses:
        answer["address"] = [hex_bytes(address) for address in sorted(wanted.addresses)]
    return answer


def _with_block(method: Method, params: list[Any], block: str) -> list[Any]:
    """Return the params with the block parameter replaced by ``block``, if the method has one."""
    decoders = enumerate(method.decoders)
    position = next((index for index, decode in decoders if decode in BLOCK_DECODERS), None)
    if position is None:  # the block is named by a hash or inside an object
        return params
    return [*params[:position], block, *params[position + 1 :]]


def _is_of_fork(found: Any, last: int) -> bool:
    number = found.get("blockNumber") if isinstance(found, dict) else None
    return isinstance(number, str) and int(number, 16) <= last
