"""Signs messages with the keys of the development accounts (EIP-191, EIP-712)."""

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import fastevm
from fastevm.core.primitives.hex import hex_bytes
from fastevm.errors import install_command
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import ADDRESS, DATA
from fastevm.rpc.dispatch.registry import Param, RunOn, method
from fastevm.rpc.errors import RpcError
from fastevm.rpc.methods.accounts import key_of
from fastevm.rpc_client.large_json import decode
from fastevm.rpc_types.quantity import DecodeError, object_fault

DOMAIN: Final = "EIP712Domain"  # primary type if the message is only the domain
NOTHING: Final = "Nothing"
TYPED_DATA_MEMBERS: Final = ("types", "primaryType", "domain", "message")
ENCODER: Final = "eth_account.messages"
TYPED_DATA: Final = b"\x19\x01"  # version 1 of EIP-191


@method("eth_sign", ADDRESS, DATA)
def sign(context: Context, address: bytes, message: bytes) -> str:
    """Sign a message (EIP-191). Returns 65 bytes, of which the last is 27 or 28."""
    return hex_bytes(key_of(context, address).sign_message(message))


@method("personal_sign", DATA, ADDRESS)
def personal_sign(context: Context, message: bytes, address: bytes) -> str:
    """Sign a message as eth_sign does, with its parameters in reverse order."""
    return sign(context, address, message)


def decode_typed_data(value: Any) -> dict[str, Any]:
    """Decode the EIP-712 object, or its JSON text, which wallets send."""
    if isinstance(value, str):
        try:
            value = decode(value)
        except ValueError as error:
            raise DecodeError(f"typed data is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise object_fault(value, "apitypes.TypedData")
    data: dict[str, Any] = {**value}
    if data.get("primaryType") == DOMAIN:
        data["message"] = {}
    for member in TYPED_DATA_MEMBERS:
        if member not in data:
            raise DecodeError(f"typed data has no member {member}")
    return data


def sign_typed_data(context: Context, address: bytes, data: dict[str, Any]) -> str:
    """Sign typed data (EIP-712). Returns 65 bytes, of which the last is 27 or 28.

    eth-account encodes the data. It does not support a message of only the domain, so such a
    message gets an empty type.
    """
    account = key_of(context, address)
    is_domain = data["primaryType"] == DOMAIN
    try:
        if is_domain:
            data = {**data, "primaryType": NOTHING, "types": {**data["types"], NOTHING: []}}
        encoded = _encoder()(full_message=data)
    except RpcError:
        raise
    except Exception as error:  # the encoder checks nothing, so it may raise any exception
        raise RpcError("invalid_params", f"typed data cannot be encoded: {error}") from error
    body = b"" if is_domain else encoded.body
    digest = fastevm.keccak256(TYPED_DATA + encoded.header + body)
    return hex_bytes(account.sign_digest(digest))


for _name in ("eth_signTypedData", "eth_signTypedData_v3", "eth_signTypedData_v4"):
    method(_name, ADDRESS, Param(decode_typed_data), run_on=RunOn.WORKER)(sign_typed_data)


def _encoder() -> Callable[..., Any]:
    """Return eth-account's encoder. Imports it at first use, because the import takes 0.3 s."""
    if find_spec("eth_account") is None:
        text = f"typed data needs the package eth-account: {install_command('blobs')}"
        raise RpcError("server_error", text)
    limit = sys.getrecursionlimit()
    try:
        found: Callable[..., Any] = import_module(ENCODER).encode_typed_data
    finally:
        # importing py_ecc raises the recursion limit beyond the thread's stack
        sys.setrecursionlimit(limit)
    return found
