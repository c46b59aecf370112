"""NodeInterface (0xc8), which Arbitrum's nodes answer in eth_call without executing code.

NodeInterface has no state: a contract that calls it finds an empty account. Source: Nitro,
``execution/nodeinterface``.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.core.primitives.replace import replace
from fastevm.fork import CLASSIC_BLOCKS
from fastevm.rpc.before_fork import requested
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.workers import require_worker
from fastevm.rpc.errors import RpcError
from fastevm.rpc_types.arbitrum import l1_number, l1_price, selector
from fastevm.simulate import CallRequest, StateView, estimated_l1_gas

NODE_INTERFACE: Final = bytes.fromhex("00000000000000000000000000000000000000c8")
NODE_INTERFACE_DEBUG: Final = bytes.fromhex("00000000000000000000000000000000000000c9")
ADDRESSES: Final = (NODE_INTERFACE, NODE_INTERFACE_DEBUG)
WORD: Final = 32

Estimate = Callable[[StateView, CallRequest], int]


def is_node_interface(state: StateView, request: CallRequest) -> bool:
    """Returns whether a call goes to NodeInterface of a chain that has it."""
    return request.to in ADDRESSES and bool(state.schedule.parameters["arbos_version"])


def answer(context: Context, state: StateView, request: CallRequest, estimate: Estimate) -> bytes:
    """Returns the output of a call to NodeInterface. Raises RpcError for an unsupported method.

    ``estimate`` is a function that estimates the gas of a transaction.
    """
    name = METHODS.get(request.data[:4]) if request.to == NODE_INTERFACE else None
    if name is None:
        raise RpcError("call", "NodeInterface: this method is not supported on a fork")
    arguments = request.data[4:]
    if name == "nitroGenesisBlock()":
        return _word(CLASSIC_BLOCKS.get(state.config.chain_id, 0))
    if name.startswith("gasEstimate"):
        return _components(state, request, arguments, estimate, is_whole="Components" in name)
    if name == "blockL1Num(uint64)" and _number(arguments, 0) > _fork_number(context):
        return _l1_number(context, _number(arguments, 0))
    return _of_upstream(context, request)


def _components(
    state: StateView, request: CallRequest, arguments: bytes, estimate: Estimate, *, is_whole: bool
) -> bytes:
    """Returns the gas, gas for L1, base fee and L1 data price of a transaction, ABI-encoded."""
    start = _number(arguments, 64)
    size = _number(arguments, start)
    creates = bool(_number(arguments, 32))
    inner = replace(
        request,
        to=None if creates else arguments[12:WORD],
        data=arguments[start + WORD : start + WORD + size],
    )
    values = [estimated_l1_gas(state, inner)]
    if is_whole:
        values.insert(0, estimate(state, inner))
    values.append(state.header.base_fee_per_gas or 0)
    values.append(l1_price(state.layer))
    return b"".join(map(_word, values))


def _l1_number(context: Context, number: int) -> bytes:
    block = context.node.chain.block_by_number(number)
    if block is None:
        raise RpcError("call", f"NodeInterface: there is no block {number}")
    return _word(l1_number(block.header))


def _of_upstream(context: Context, request: CallRequest) -> bytes:
    """Returns the upstream's answer at the fork block. Raises RpcError without a fork."""
    history = context.node.history
    if history is None:
        raise RpcError("call", "NodeInterface: this method needs a fork of a chain of Arbitrum")
    require_worker(is_long=True)
    asked = {"to": hex_bytes(NODE_INTERFACE), "data": hex_bytes(request.data)}
    found = requested(history, "eth_call", [asked, quantity(history.number)])
    return bytes.fromhex(str(found)[2:])


def _fork_number(context: Context) -> int:
    history = context.node.history
    return -1 if history is None else history.number


def _number(data: bytes, at: int) -> int:
    """Returns the 32-byte word at offset ``at``. Raises RpcError if the data are shorter."""
    if at + WORD > len(data):
        raise RpcError("call", "NodeInterface: the call data are too short")
    return int.from_bytes(data[at : at + WORD], "big")


def _word(value: int) -> bytes:
    return value.to_bytes(WORD, "big")


METHODS: Final[Mapping[bytes, str]] = MappingProxyType(
    {
        selector(signature): signature
        for signature in (
            "nitroGenesisBlock()",
            "gasEstimateComponents(address,bool,bytes)",
            "gasEstimateL1Component(address,bool,bytes)",
            "blockL1Num(uint64)",
            "l2BlockRangeForL1(uint64)",
            "findBatchContainingBlock(uint64)",
            "getL1Confirmations(bytes32)",
            "constructOutboxProof(uint64,uint64)",
            "legacyLookupMessageBatchProof(uint256,uint64)",
        )
    }
)
"""The supported methods by selector. Methods about retryable tickets are missing, because a fork
does not execute retries.
"""
