"""Signs and sends transactions of the development accounts, whose keys are public.

These accounts let ``eth_sendTransaction`` work without a wallet, as on other development nodes. The
node has no other keys. On a chain without development accounts every sender is unknown unless it is
impersonated.
"""

import os
from threading import Lock
from typing import Any, Final

import fastevm
from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.primitives.replace import replace
from fastevm.node import DevAccount, refuse_gap
from fastevm.rpc.block_id import PENDING_BLOCK, decode_count
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import ADDRESS, decode_text
from fastevm.rpc.dispatch.registry import Param, RunOn, method
from fastevm.rpc.dispatch.workers import long_running, require_worker_above_limit
from fastevm.rpc.errors import RpcError
from fastevm.rpc.methods.calls import CALL, estimated
from fastevm.rpc.methods.development import at_once
from fastevm.rpc.methods.failed_sends import checked_send, prepare_send
from fastevm.rpc.methods.fees import decided_base_fee, next_base_fee, suggested_tip
from fastevm.rpc.methods.pool import (
    BYTES_OF_AN_OBJECT,
    receipt_within,
    refusals,
    require_worker_above_one_light,
    wait_within,
)
from fastevm.rpc_types.call_object import decode_call
from fastevm.rpc_types.transactions import Json, transaction_json
from fastevm.simulate import BlockOverrides, CallRequest, lists_of

LOW_PRICE: Final = "max fee per gas less than block base fee"
NO_SENDER: Final = bytes(20)
DYNAMIC_FEES: Final = (2, 4)  # types of transactions with a fee cap and a tip
PASSWORD: Final = Param(decode_text, optional=True)
SECONDS: Final = Param(decode_count, optional=True)

_counting = Lock()  # two concurrent requests must not get the same nonce


def _after_fork() -> None:
    """Replace the lock, because no thread of a child process would release a held lock."""
    global _counting
    _counting = Lock()


os.register_at_fork(after_in_child=_after_fork)


@method("eth_accounts")
def accounts(context: Context) -> list[str]:
    """Return the development accounts and the impersonated accounts.

    As on Hardhat's network, accounts that only hardhat_impersonateAccount named are absent.
    """
    held = [account.address for account in context.node.accounts]
    named = context.node.development.impersonation.listed
    return [hex_bytes(address) for address in dict.fromkeys((*held, *named))]


method("eth_requestAccounts")(accounts)


def decode_transaction(value: Any) -> CallRequest:
    """Decode a transaction to send. The sender is empty if the object has none."""
    request = decode_call(value)
    return request if value.get("from") is not None else replace(request, sender=b"")


TRANSACTION: Final = Param(decode_transaction)


@method("eth_sendTransaction", TRANSACTION, run_on=RunOn.SMALL)
@at_once
@long_running
def send_transaction(context: Context, request: CallRequest) -> str:
    """Submit a transaction of a development or impersonated account. Returns its hash.

    Missing fields are filled in: the nonce after the pooled transactions, the gas estimated on
    ``pending``, a fee cap of twice the base fee plus a suggested tip. On a development node the
    first account is the default sender, and a transaction that fails gets the gas of a block.
    """
    prepare_send(context)
    request = with_sender(context, request)
    if not is_impersonated(context, request.sender):
        key_of(context, request.sender)
    refuse_unsigned_kinds(context, request)
    gas = request.gas or context.workers.briefly(gas_for, context, request, True)
    require_worker_above_limit(len(request.data) // BYTES_OF_AN_OBJECT)
    require_worker_above_one_light(context, gas)
    request = replace(request, gas=gas)
    if is_impersonated(context, request.sender):
        return checked_send(context, submitted_for(context, request))
    with _counting, refusals():
        made = signed(context, request, sent=True)
        hash_text = hex_bytes(context.node.submit_signed(made.raw, request.sender))
    return checked_send(context, hash_text)


def with_sender(context: Context, request: CallRequest) -> CallRequest:
    """Return the request with a sender: the given sender, or else the dialect's default."""
    if request.sender:
        return request
    named = context.dialect.first_account_sends and context.node.accounts
    return replace(request, sender=named[0].address if named else NO_SENDER)


@method(
    "eth_resend",
    TRANSACTION,
    Param(decode_count, optional=True),
    Param(decode_count, optional=True),
    run_on=RunOn.WORKER,
)
@long_running
def resend(context: Context, request: CallRequest, price: int | None, gas: int | None) -> str:
    """Replace a pooled transaction by one with a different gas price or gas limit.

    Sender and nonce of the object select the waiting transaction. Receiver, value and data must
    equal those of the transaction. The gas price (wei) becomes fee cap and tip if the transaction
    has them. Returns the new hash. The error is -32000 if no such transaction waits, or if the
    price is too low for a replacement.
    """
    request = with_sender(context, request)
    if request.nonce is None:
        raise RpcError("server_error", "missing transaction nonce in transaction spec")
    executable, queued = context.node.pool.content_of(request.sender)
    old = executable.get(request.nonce) or queued.get(request.nonce)
    same = old is not None and (old.to, old.value, old.data) == (
        request.to, request.value, request.data,
    )  # fmt: skip
    if old is None or not same:
        raise RpcError("server_error", f"transaction with nonce {request.nonce} not found")
    is_dynamic = old.type in DYNAMIC_FEES
    renewed = replace(
        request,
        gas=gas or old.gas_limit,
        gas_price=None if is_dynamic else price or old.gas_price,
        max_fee_per_gas=(price or old.max_fee_per_gas) if is_dynamic else None,
        max_priority_fee_per_gas=(price or old.max_priority_fee_per_gas) if is_dynamic else None,
        access_list=old.access_list if old.type else None,
        authorization_list=old.authorization_list or None,
    )
    hash_text: str = send_transaction(context, renewed)
    return hash_text


@method(
    "eth_sendTransactionSync", TRANSACTION, Param(decode_count, optional=True), run_on=RunOn.TASK
)
async def send_transaction_sync(context: Context, request: CallRequest, wait: int | None) -> bytes:
    """Submit a transaction as eth_sendTransaction does, and wait for its receipt."""
    wait = wait_within(context, wait)
    with context.hub.waiter():
        hash_text = await context.workers.run(send_next_of_account, context, request, long=True)
        return await receipt_within(context, hash_text, wait)


def send_next_of_account(context: Context, request: CallRequest) -> str:
    """Submit a transaction as eth_sendTransaction does. Raises RpcError for a nonce gap."""
    if request.nonce is not None and not context.node.forwards:
        sender = with_sender(context, request).sender
        with refusals():
            refuse_gap(request.nonce, context.node.pool.next_nonce(sender))
    hash_text: str = send_transaction(context, request)
    return hash_text


@method("personal_listAccounts")
def list_accounts(context: Context) -> list[str]:
    """Return the accounts that the node has keys for."""
    return [hex_bytes(account.address) for account in context.node.accounts]


@method("personal_unlockAccount", ADDRESS, PASSWORD, SECONDS)
def unlock_account(context: Context, address: bytes, _: Any, __: Any) -> bool:
    """Return true for an account whose transactions the node signs: accounts are never locked."""
    if not is_impersonated(context, address):
        key_of(context, address)
    return True


@method("personal_lockAccount", ADDRESS)
def lock_account(context: Context, address: bytes) -> bool:
    """Return false: the development accounts cannot be locked."""
    key_of(context, address)
    return False


@method("personal_sendTransaction", TRANSACTION, PASSWORD, run_on=RunOn.WORKER)
@long_running
def personal_send_transaction(context: Context, request: CallRequest, _: Any) -> str:
    """Submit a transaction as eth_sendTransaction does. The password is ignored."""
    hash_text: str = send_transaction(context, request)
    return hash_text


@method("eth_signTransaction", CALL, run_on=RunOn.WORKER)
@long_running
def sign_transaction(context: Context, request: CallRequest) -> Json:
    """Return a signed transaction of a development account, filled in as by eth_sendTransaction."""
    transaction = signed(context, request)
    return {"raw": hex_bytes(transaction.raw), "tx": transaction_json(transaction)}


@method("eth_fillTransaction", CALL, run_on=RunOn.WORKER)
@long_running
def fill_transaction(context: Context, request: CallRequest) -> Json:
    """Return the unsigned transaction that eth_sendTransaction would sign, for any sender.

    Omits the raw bytes, because a client might sign them without checking what they contain.
    """
    transaction = built(filled(context, request), sender=request.sender)
    return {"tx": transaction_json(transaction)}


def is_impersonated(context: Context, address: bytes) -> bool:
    """Return whether transactions of the account need no signature."""
    return context.node.development.impersonation.covers(address)


def key_of(context: Context, address: bytes) -> DevAccount:
    """Return the development account at ``address``. Raises RpcError if there is none."""
    for account in context.node.accounts:
        if account.address == address:
            return account
    raise RpcError("unknown_account")


def submitted_for(context: Context, request: CallRequest) -> str:
    """Submit an unsigned transaction. The caller checks that the sender is impersonated."""
    with _counting, refusals():
        fields = filled(context, request, sent=True)
        built(fields)  # raises RpcError about the invalid field
        return hex_bytes(context.node.submit_impersonated(request.sender, fields))


def signed(context: Context, request: CallRequest, *, sent: bool = False) -> Any:
    """Return the transaction of a call object, filled in and signed."""
    account = key_of(context, request.sender)
    unsigned = built(filled(context, request, sent=sent))
    return unsigned.sign(account.private_key, chain_id=context.node.signed_chain_id)


def filled(context: Context, request: CallRequest, *, sent: bool = False) -> dict[str, Any]:
    """Return all fields of a transaction: the fields of the call object, and defaults for the rest.

    With ``sent``, the transaction will be sent. If the dialect has ``failing_is_sent``, a
    transaction that will fail is then not refused.
    """
    refuse_unsigned_kinds(context, request)
    fields: dict[str, Any] = {
        "nonce": request.nonce,
        "to": request.to,
        "value": request.value,
        "data": request.data,
        "gas_limit": request.gas or gas_for(context, request, sent),
        **prices(context, request, sent),
        **lists_of(request),
    }
    if "gas_price" not in fields or "access_list" in fields:
        fields["chain_id"] = context.node.config.chain_id
    if fields["nonce"] is None:
        fields["nonce"] = context.node.pool.next_nonce(request.sender)
    if sent:
        refuse_low_price(context, fields)
    return fields


def refuse_unsigned_kinds(context: Context, request: CallRequest) -> None:
    """Raise RpcError for a transaction with a different chain id or with blobs."""
    chain_id = context.node.config.chain_id
    if request.chain_id not in (None, chain_id):
        raise RpcError("wrong_chain_id", have=request.chain_id, want=chain_id)
    if request.blob_versioned_hashes is not None or request.max_fee_per_blob_gas is not None:
        raise RpcError("blobs_not_signed")  # a call object cannot carry blobs and proofs


def refuse_low_price(context: Context, fields: dict[str, Any]) -> None:
    """Raise RpcError if the price is below the next base fee.

    Does so only if the dialect has ``failing_is_sent``.
    """
    base_fee = next_base_fee(context, context.node.chain.head)
    price: int = fields["max_fee_per_gas" if "max_fee_per_gas" in fields else "gas_price"]
    if context.dialect.failing_is_sent and base_fee is not None and price < base_fee:
        raise RpcError("pool.fee_cap_too_low", f"{LOW_PRICE}: {price} < {base_fee}")


def built(fields: dict[str, Any], **more: Any) -> fastevm.Transaction:
    """Return a transaction with these fields. Raises RpcError if they are invalid."""
    try:
        return fastevm.Transaction.build(**fields, **more)
    except (ValueError, TypeError) as error:
        raise RpcError("invalid_params", str(error)) from error


def gas_for(context: Context, request: CallRequest, sent: bool) -> int:
    """Return the estimated gas.

    If the estimate fails, a transaction to be ``sent`` gets the gas limit of a block, or the gas
    cap of a transaction (EIP-7825), if the dialect has ``failing_is_sent``.
    """
    try:
        return least_gas(context, request)
    except RpcError:
        if not (sent and context.dialect.failing_is_sent):
            raise
    head = context.node.chain.head
    cap = int(context.node.chain.schedule_of(head.hash).parameters["tx_gas_cap"])
    limit = head.header.gas_limit
    return min(limit, cap) if cap else limit


def least_gas(context: Context, request: CallRequest) -> int:
    """Return the gas estimated on ``pending``, the state in which the transaction will run."""
    state = context.view(PENDING_BLOCK).state()
    decided = decided_base_fee(context, context.node.chain.head)
    return estimated(context, state, request, {}, BlockOverrides(base_fee_per_gas=decided))


def prices(context: Context, request: CallRequest, sent: bool) -> dict[str, int]:
    """Return the fee fields of a transaction in wei: the fields of the request, or else defaults.

    The default fee cap is twice the base fee plus the tip, which suffices for several full blocks.
    The default tip does not exceed a given fee cap. The dialect ``prices_of_next_block`` differs as
    anvil does: the default fee cap is the gas price, and a given fee cap limits the default tip
    only if the transaction is ``sent``.
    """
    if request.gas_price is not None:
        return {"gas_price": request.gas_price}
    base_fee = next_base_fee(context, context.node.chain.head)
    if base_fee is None:
        return {"gas_price": suggested_tip(context)}
    tip, cap = request.max_priority_fee_per_gas, request.max_fee_per_gas
    suggested = suggested_tip(context) if tip is None or cap is None else 0
    as_anvil = context.dialect.prices_of_next_block
    if tip is None:
        tip = suggested if cap is None or (as_anvil and not sent) else min(suggested, cap)
    if cap is None:
        cap = max(base_fee + suggested, tip) if as_anvil else 2 * base_fee + tip
    return {"max_fee_per_gas": cap, "max_priority_fee_per_gas": tip}
