"""Settings of a development chain's next blocks: fees, gas limit, coinbase, prevRandao.

Names and answers are those of anvil and Hardhat.
"""

from typing import Any, Final

from fastevm.core.primitives.hex import hex_bytes
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import ADDRESS
from fastevm.rpc.dispatch.registry import Param
from fastevm.rpc.methods.development import NUMBER, WEI, attempt, control, methods, setters
from fastevm.rpc_types.quantity import decode_bool, decode_storage_slot

WORD_BYTES: Final = 32


def decode_word(value: Any) -> bytes:
    """Decode 32 bytes; a shorter hex number is padded on the left."""
    return decode_storage_slot(value)[0].to_bytes(WORD_BYTES, "big")


@methods(["eth_coinbase"])
def coinbase(context: Context) -> str:
    """Return the fee recipient of the next block."""
    return hex_bytes(context.node.coinbase)


@setters(["anvil_setCoinbase", "hardhat_setCoinbase"], ADDRESS)
def set_coinbase(context: Context, address: bytes) -> None:
    """Set the fee recipient of all later blocks."""
    attempt(control(context).settings.set_coinbase, address)


@methods(["evm_setBlockGasLimit", "anvil_setBlockGasLimit"], NUMBER)
def set_block_gas_limit(context: Context, gas_limit: int) -> bool:
    """Set the gas limit of all later blocks. Returns true."""
    attempt(control(context).settings.set_gas_limit, gas_limit)
    return True


@setters(["anvil_setNextBlockBaseFeePerGas", "hardhat_setNextBlockBaseFeePerGas"], WEI)
def set_next_block_base_fee(context: Context, base_fee: int) -> None:
    """Set the base fee of the next block, in wei."""
    attempt(control(context).settings.set_next_base_fee, base_fee)


@setters(["anvil_setMinGasPrice", "hardhat_setMinGasPrice"], WEI)
def set_min_gas_price(context: Context, price: int) -> None:
    """Set the minimum gas price in wei. Raises RpcError if blocks have base fees."""
    attempt(control(context).settings.set_min_gas_price, price)


@setters(["hardhat_setPrevRandao", "anvil_setNextBlockPrevRandao"], Param(decode_word))
def set_prev_randao(context: Context, prev_randao: bytes) -> None:
    """Set the prevRandao of the next block."""
    attempt(control(context).settings.set_next_prev_randao, prev_randao)


@methods(["anvil_setChainId"], NUMBER)
def set_chain_id(context: Context, chain_id: int) -> None:
    """Set the chain id."""
    attempt(control(context).settings.set_chain_id, chain_id)


@methods(["anvil_setLoggingEnabled", "hardhat_setLoggingEnabled"], Param(decode_bool))
def set_logging_enabled(context: Context, wanted: bool) -> None:
    """Turn logging on or off. Errors are always logged."""
    control(context).settings.set_logging(wanted)
