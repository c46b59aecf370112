"""Sets ERC-20 balances and allowances by writing the storage slots that the token reads."""

from __future__ import annotations

from typing import Final

from fastevm import tracing
from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import ADDRESS
from fastevm.rpc.errors import RpcError
from fastevm.rpc.methods.development import WEI, amend, attempt, setters
from fastevm.simulate import CallRequest
from fastevm.tracing import TracingError

BALANCE_OF: Final = bytes.fromhex("70a08231")
ALLOWANCE: Final = bytes.fromhex("dd62ed3e")
PADDING: Final = bytes(12)  # zeros that extend an address to a word


@setters(["anvil_dealERC20", "hardhat_dealERC20", "anvil_setERC20Balance"], ADDRESS, ADDRESS, WEI)
def deal_erc20(context: Context, account: bytes, token: bytes, amount: int) -> None:
    """Set an account's balance of a token, in the smallest unit. The total supply stays."""
    _write(context, token, BALANCE_OF + PADDING + account, amount)


@setters(["anvil_setERC20Allowance"], ADDRESS, ADDRESS, ADDRESS, WEI)
def set_erc20_allowance(
    context: Context, owner: bytes, spender: bytes, token: bytes, amount: int
) -> None:
    """Set the allowance of a spender for an owner's tokens, in the smallest unit."""
    _write(context, token, ALLOWANCE + PADDING + owner + PADDING + spender, amount)


def _write(context: Context, token: bytes, data: bytes, amount: int) -> None:
    view = context.latest_view().state()
    try:
        field = tracing.find_slot(
            view,
            CallRequest(to=token, data=data),
            gas_cap=context.limits.call_gas,
            timeout=context.limits.call_time,
        )
    except TracingError as error:
        raise RpcError("invalid_params", str(error)) from error
    if field is None:
        text = f"no slot that {hex_bytes(token)} reads holds what it returns"
        raise RpcError("invalid_params", text)
    word = attempt(field.written, view.layer.storage(field.address, field.slot), amount)
    amend(context, field.address, storage={quantity(field.slot): quantity(word)})
