"""Lets a development node send transactions of impersonated accounts, without their keys.

Names and answers are those of anvil, Hardhat and Ganache.
"""

from typing import Any

from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import ADDRESS, decode_text
from fastevm.rpc.dispatch.registry import Param
from fastevm.rpc.errors import RpcError
from fastevm.rpc.methods.accounts import submitted_for
from fastevm.rpc.methods.calls import CALL
from fastevm.rpc.methods.development import attempt, control, methods, short_methods
from fastevm.rpc_types.quantity import DecodeError, decode_address, decode_bool, decode_bytes
from fastevm.simulate import CallRequest

SWITCH = Param(decode_bool)
PASSWORD = Param(decode_text, optional=True)
PAIR = 2  # length of a list of signature and account


def decode_signature(value: Any) -> tuple[bytes, bytes | None]:
    """Decode a signature, or a list of a signature and its account."""
    if not isinstance(value, list):
        return decode_bytes(value), None
    if len(value) != PAIR:
        raise DecodeError("expected a signature and an address")
    return decode_bytes(value[0]), decode_address(value[1])


@short_methods(["anvil_impersonateAccount"], ADDRESS)
def impersonate_account(context: Context, address: bytes) -> None:
    """Let eth_sendTransaction accept transactions of an account or contract without its key."""
    attempt(control(context).impersonation.start, address)


@short_methods(["hardhat_impersonateAccount"], ADDRESS)
def impersonate_unlisted_account(context: Context, address: bytes) -> None:
    """Impersonate an account that eth_accounts does not list, as on Hardhat's network.

    Test suites of contracts use all accounts in eth_accounts as test accounts.
    """
    attempt(control(context).impersonation.start, address, listed=False)


@short_methods(["anvil_stopImpersonatingAccount", "hardhat_stopImpersonatingAccount"], ADDRESS)
def stop_impersonating_account(context: Context, address: bytes) -> None:
    """Stop impersonating an account. Transactions that were already sent stay."""
    control(context).impersonation.stop(address)


@short_methods(["anvil_autoImpersonateAccount", "hardhat_autoImpersonateAccount"], SWITCH)
def auto_impersonate_account(context: Context, wanted: bool) -> None:
    """Impersonate every account (true), or only the accounts that calls have named (false)."""
    control(context).impersonation.everyone = wanted


@methods(
    ["anvil_impersonateSignature"], Param(decode_signature), Param(decode_address, optional=True)
)
def impersonate_signature(context: Context, given: Any, address: bytes | None) -> None:
    """Make ECRECOVER return an account for a signature of 65 bytes (r, s, v) of any message.

    Signature and account come as one list, as in anvil, or as two parameters.
    """
    signature, listed = given
    signer = address if listed is None else listed
    if signer is None:
        raise RpcError("missing_argument", position=1)
    attempt(control(context).impersonation.signs, signer, signature)


@methods(["eth_sendUnsignedTransaction"], CALL)
def send_unsigned_transaction(context: Context, request: CallRequest) -> str:
    """Submit a transaction of the account ``from`` without a signature. Returns the hash.

    Missing fields are filled in as by eth_sendTransaction.
    """
    return submitted_for(context, request)


@methods(["evm_addAccount"], ADDRESS, PASSWORD)
def add_account(context: Context, address: bytes, _: str | None) -> bool:
    """Impersonate an account (Ganache's name). Returns false if it was already impersonated."""
    found = control(context).impersonation
    is_new = address not in found.accounts
    attempt(found.start, address)
    return is_new


@methods(["evm_removeAccount"], ADDRESS, PASSWORD)
def remove_account(context: Context, address: bytes, _: str | None) -> bool:
    """Stop impersonating an account. Returns whether it was impersonated."""
    return control(context).impersonation.stop(address)
