"""Transactions of accounts whose keys nobody here has, on a development chain.

Names and answers are anvil's, Hardhat's and Ganache's.
"""

from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import ADDRESS, decode_text
from fastevm.rpc.dispatch.registry import Param
from fastevm.rpc.methods.accounts import submitted_for
from fastevm.rpc.methods.calls import CALL
from fastevm.rpc.methods.development import attempt, control, methods
from fastevm.simulate import CallRequest
from fastevm.wire.quantity import decode_bool

SWITCH = Param(decode_bool)
PASSWORD = Param(decode_text, optional=True)


@methods(["anvil_impersonateAccount", "hardhat_impersonateAccount"], ADDRESS)
def impersonate_account(context: Context, address: bytes) -> None:
    """Let eth_sendTransaction take transactions of an account, contracts too, without its key."""
    attempt(control(context).impersonation.start, address)


@methods(["anvil_stopImpersonatingAccount", "hardhat_stopImpersonatingAccount"], ADDRESS)
def stop_impersonating_account(context: Context, address: bytes) -> None:
    """Take no more of them; those that were sent stay."""
    control(context).impersonation.stop(address)


@methods(["anvil_autoImpersonateAccount", "hardhat_autoImpersonateAccount"], SWITCH)
def auto_impersonate_account(context: Context, wanted: bool) -> None:
    """Let eth_sendTransaction take transactions of every account, or only of those named."""
    control(context).impersonation.everyone = wanted


@methods(["eth_sendUnsignedTransaction"], CALL)
def send_unsigned_transaction(context: Context, request: CallRequest) -> str:
    """Submit a transaction of ``from`` without its signature; return its hash.

    What is left out is filled in as by eth_sendTransaction.
    """
    control(context)
    return submitted_for(context, request)


@methods(["evm_addAccount"], ADDRESS, PASSWORD)
def add_account(context: Context, address: bytes, _: str | None) -> bool:
    """Impersonate an account, as Ganache has it; return whether it was not known before."""
    found = control(context).impersonation
    is_new = address not in found.accounts
    attempt(found.start, address)
    return is_new


@methods(["evm_removeAccount"], ADDRESS, PASSWORD)
def remove_account(context: Context, address: bytes, _: str | None) -> bool:
    """Impersonate an account no longer; return whether it was."""
    stopped: bool = control(context).impersonation.stop(address)
    return stopped
