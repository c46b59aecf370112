"""Messages signed with the keys of the development accounts (EIP-191, EIP-712)."""

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

DOMAIN: Final = "EIP712Domain"  # as primary type: the domain itself is what is signed
NOTHING: Final = "Nothing"
TYPED_DATA_MEMBERS: Final = ("types", "primaryType", "domain", "message")
ENCODER: Final = "eth_account.messages"
TYPED_DATA: Final = b"\x19\x01"  # version 1 of EIP-191


@method("eth_sign", ADDRESS, DATA)
def sign(context: Context, address: bytes, message: bytes) -> str:
    """Sign a message as EIP-191 has it; 65 bytes, the last one 27 or 28."""
    return hex_bytes(key_of(context, address).sign_message(message))


@method("personal_sign", DATA, ADDRESS)
def personal_sign(context: Context, message: bytes, address: bytes) -> str:
    """Sign a message: eth_sign with its parameters the other way round."""
    return sign(context, address, message)


def decode_typed_data(value: Any) -> dict[str, Any]:
    """Decode the object of EIP-712, or its JSON text as wallets take it."""
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
    """Sign typed data as EIP-712 has it; 65 bytes, the last one 27 or 28.

    The encoding is that of the package eth-account, which knows no message of the domain alone.
    """
    account = key_of(context, address)
    is_domain = data["primaryType"] == DOMAIN
    try:
        if is_domain:
            data = {**data, "primaryType": NOTHING, "types": {**data["types"], NOTHING: []}}
        encoded = _encoder()(full_message=data)
    except RpcError:
        raise
    except Exception as error:  # the encoder checks nothing, so that anything may come
        raise RpcError("invalid_params", f"typed data cannot be encoded: {error}") from error
    body = b"" if is_domain else encoded.body
    digest = fastevm.keccak256(TYPED_DATA + encoded.header + body)
    return hex_bytes(account.sign_digest(digest))


for _name in ("eth_signTypedData", "eth_signTypedData_v3", "eth_signTypedData_v4"):
    method(_name, ADDRESS, Param(decode_typed_data), run_on=RunOn.WORKER)(sign_typed_data)


def _encoder() -> Callable[..., Any]:
    """What encodes typed data: loaded when it is first used, since that takes 0.3 s."""
    if find_spec("eth_account") is None:
        text = f"typed data needs the package eth-account: {install_command('blobs')}"
        raise RpcError("server_error", text)
    limit = sys.getrecursionlimit()
    try:
        found: Callable[..., Any] = import_module(ENCODER).encode_typed_data
    finally:
        sys.setrecursionlimit(limit)  # py_ecc, which is imported, raises it beyond the stack
    return found
