"""What the next blocks of a development chain have: fees, gas limit, coinbase, randomness.

Names and answers are anvil's and Hardhat's.
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
    """Decode 32 bytes, or a shorter number in hex."""
    return decode_storage_slot(value)[0].to_bytes(WORD_BYTES, "big")


@methods(["eth_coinbase"])
def coinbase(context: Context) -> str:
    """Return who gets the fees of the next block."""
    return hex_bytes(context.node.coinbase)


@setters(["anvil_setCoinbase", "hardhat_setCoinbase"], ADDRESS)
def set_coinbase(context: Context, address: bytes) -> None:
    """Give the fees of all later blocks to an account."""
    attempt(control(context).settings.set_coinbase, address)


@methods(["evm_setBlockGasLimit", "anvil_setBlockGasLimit"], NUMBER)
def set_block_gas_limit(context: Context, gas_limit: int) -> bool:
    """Give all later blocks this gas limit; return true."""
    attempt(control(context).settings.set_gas_limit, gas_limit)
    return True


@setters(["anvil_setNextBlockBaseFeePerGas", "hardhat_setNextBlockBaseFeePerGas"], WEI)
def set_next_block_base_fee(context: Context, base_fee: int) -> None:
    """Give the next block this base fee, in wei."""
    attempt(control(context).settings.set_next_base_fee, base_fee)


@setters(["anvil_setMinGasPrice", "hardhat_setMinGasPrice"], WEI)
def set_min_gas_price(context: Context, price: int) -> None:
    """Take only transactions that offer this price in wei; refused where blocks have base fees."""
    attempt(control(context).settings.set_min_gas_price, price)


@setters(["hardhat_setPrevRandao", "anvil_setNextBlockPrevRandao"], Param(decode_word))
def set_prev_randao(context: Context, prev_randao: bytes) -> None:
    """Give the next block this randomness."""
    attempt(control(context).settings.set_next_prev_randao, prev_randao)


@methods(["anvil_setChainId"], NUMBER)
def set_chain_id(context: Context, chain_id: int) -> None:
    """Give the chain another id."""
    attempt(control(context).settings.set_chain_id, chain_id)


@methods(["anvil_setLoggingEnabled", "hardhat_setLoggingEnabled"], Param(decode_bool))
def set_logging_enabled(context: Context, wanted: bool) -> None:
    """Let the node log everything, or errors only."""
    control(context).settings.set_logging(wanted)
