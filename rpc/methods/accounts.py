"""The development accounts, whose keys everybody knows: what a wallet would sign, signed here.

They make first steps short (``eth_sendTransaction`` without a wallet, as on other development
nodes). The node holds no other keys; on a chain without such accounts every sender is unknown, but
for those that are impersonated.
"""

from threading import Lock
from typing import Any, Final

import fastevm
from fastevm.rpc.backend import DevAccount
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import ADDRESS, decode_text
from fastevm.rpc.dispatch.registry import Param, Place, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.errors import RpcError
from fastevm.rpc.methods.calls import CALL, estimated
from fastevm.rpc.methods.fees import decided_base_fee, next_base_fee, suggested_tip
from fastevm.rpc.methods.pool import (
    checked_wait,
    receipt_within,
    refusals,
    send_raw_transaction,
)
from fastevm.rpc.selectors import PENDING_BLOCK, decode_count
from fastevm.simulate import BlockOverrides, CallRequest, lists_of
from fastevm.wire.text.hex import hex_bytes
from fastevm.wire.transactions import Json, transaction_json

PASSWORD: Final = Param(decode_text, optional=True)
SECONDS: Final = Param(decode_count, optional=True)

_counting = Lock()  # two requests at once must not get the same nonce


@method("eth_accounts")
def accounts(context: Context) -> list[str]:
    """Return the development accounts and the impersonated ones, whose key the node lacks."""
    held = [account.address for account in context.node.accounts]
    development = context.node.development
    named = () if development is None else development.impersonation.accounts
    return [hex_bytes(address) for address in dict.fromkeys((*held, *named))]


method("eth_requestAccounts")(accounts)


@method("eth_sendTransaction", CALL, place=Place.WORKER)
@long_running
def send_transaction(context: Context, request: CallRequest) -> str:
    """Submit a transaction of a development account, or of an impersonated one; return its hash.

    What is left out is filled in: the nonce after all that waits in the pool, the gas estimated on
    ``pending``, a fee cap of twice the base fee and a suggested tip.
    """
    if is_impersonated(context, request.sender):
        return submitted_for(context, request)
    with _counting:
        return send_raw_transaction(context, signed(context, request).raw)


@method("eth_sendTransactionSync", CALL, Param(decode_count, optional=True), place=Place.TASK)
async def send_transaction_sync(context: Context, request: CallRequest, wait: int | None) -> bytes:
    """Do the same and return the receipt, as eth_sendRawTransactionSync does."""
    wait = checked_wait(context, wait)
    told = await context.workers.run(send_transaction, context, request, long=True)
    return await receipt_within(context, told, wait)


@method("personal_listAccounts")
def list_accounts(context: Context) -> list[str]:
    """Return the accounts of which the node holds the key."""
    return [hex_bytes(account.address) for account in context.node.accounts]


@method("personal_unlockAccount", ADDRESS, PASSWORD, SECONDS)
def unlock_account(context: Context, address: bytes, _: Any, __: Any) -> bool:
    """Return true for an account that may send: none is ever locked."""
    if not is_impersonated(context, address):
        key_of(context, address)
    return True


@method("personal_lockAccount", ADDRESS)
def lock_account(context: Context, address: bytes) -> bool:
    """Return false: the development accounts cannot be locked."""
    key_of(context, address)
    return False


@method("personal_sendTransaction", CALL, PASSWORD, place=Place.WORKER)
@long_running
def personal_send_transaction(context: Context, request: CallRequest, _: Any) -> str:
    """Do what eth_sendTransaction does; the password is not looked at."""
    return send_transaction(context, request)


@method("eth_signTransaction", CALL, place=Place.WORKER)
@long_running
def sign_transaction(context: Context, request: CallRequest) -> Json:
    """Sign a transaction of a development account, filled in as by eth_sendTransaction."""
    transaction = signed(context, request)
    return {"raw": hex_bytes(transaction.raw), "tx": transaction_json(transaction)}


@method("eth_fillTransaction", CALL, place=Place.WORKER)
@long_running
def fill_transaction(context: Context, request: CallRequest) -> Json:
    """Return the transaction that eth_sendTransaction would sign; of any sender, not signed."""
    transaction = built(filled(context, request), sender=request.sender)
    return {"raw": hex_bytes(transaction.raw), "tx": transaction_json(transaction)}


def is_impersonated(context: Context, address: bytes) -> bool:
    """Whether transactions of the account need no signature."""
    development = context.node.development
    return development is not None and development.impersonation.covers(address)


def key_of(context: Context, address: bytes) -> DevAccount:
    """Return the development account at ``address``; RpcError if there is none."""
    for account in context.node.accounts:
        if account.address == address:
            return account
    raise RpcError("unknown_account")


def submitted_for(context: Context, request: CallRequest) -> str:
    """Submit a transaction that nobody signed; the caller has to know that it may."""
    with _counting, refusals():
        fields = filled(context, request)
        built(fields)  # or it says which one does not fit
        return hex_bytes(context.node.submit_impersonated(request.sender, fields))


def signed(context: Context, request: CallRequest) -> Any:
    """Return the transaction that a call object asks for, filled in and signed."""
    account = key_of(context, request.sender)
    unsigned = built(filled(context, request))
    return unsigned.sign(account.private_key, chain_id=context.node.signed_chain_id)


def filled(context: Context, request: CallRequest) -> dict[str, Any]:
    """Return the fields of the transaction that a call object asks for, none left out."""
    chain_id = context.node.config.chain_id
    if request.chain_id not in (None, chain_id):
        raise RpcError("wrong_chain_id", have=request.chain_id, want=chain_id)
    if request.blob_versioned_hashes is not None or request.max_fee_per_blob_gas is not None:
        raise RpcError("blobs_not_signed")  # a call object has no room for what proves them
    fields: dict[str, Any] = {
        "nonce": request.nonce,
        "to": request.to,
        "value": request.value,
        "data": request.data,
        "gas_limit": request.gas or least_gas(context, request),
        **prices(context, request),
        **lists_of(request),
    }
    if "gas_price" not in fields or "access_list" in fields:
        fields["chain_id"] = chain_id
    if fields["nonce"] is None:
        fields["nonce"] = context.node.pool.next_nonce(request.sender)
    return fields


def built(fields: dict[str, Any], **more: Any) -> fastevm.Transaction:
    """Return the transaction of these fields."""
    try:
        return fastevm.Transaction.build(**fields, **more)
    except (ValueError, TypeError) as error:
        raise RpcError("invalid_params", str(error)) from error


def least_gas(context: Context, request: CallRequest) -> int:
    """Return an estimate on ``pending``, where the transaction will run."""
    state = context.view(PENDING_BLOCK).state()
    decided = decided_base_fee(context, context.node.chain.head)
    return estimated(context, state, request, {}, BlockOverrides(base_fee_per_gas=decided))


def prices(context: Context, request: CallRequest) -> dict[str, int]:
    """Return the price fields: what was given, else a cap that outlives a few full blocks."""
    if request.gas_price is not None:
        return {"gas_price": request.gas_price}
    base_fee = next_base_fee(context, context.node.chain.head)
    if base_fee is None:
        return {"gas_price": suggested_tip(context)}
    tip, cap = request.max_priority_fee_per_gas, request.max_fee_per_gas
    if tip is None:
        tip = suggested_tip(context)
        tip = tip if cap is None else min(tip, cap)
    return {
        "max_fee_per_gas": 2 * base_fee + tip if cap is None else cap,
        "max_priority_fee_per_gas": tip,
    }
