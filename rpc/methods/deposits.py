"""fastevm_deposit: makes a deposit of an L1 user on a development chain of the OP stack."""

from typing import Any, Final

from fastevm.core.primitives.hex import hex_bytes
from fastevm.errors import InvalidTransaction
from fastevm.node.production import Deposit, DepositRefused
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.registry import Param, RunOn, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.errors import RpcError, family_reason
from fastevm.rpc_types.quantity import (
    DecodeError,
    decode_address,
    decode_bytes,
    decode_uint64,
    decode_uint256,
    object_fault,
)

KIND: Final = "Deposit"
MEMBERS: Final = frozenset(("from", "to", "mint", "value", "gas", "data"))
DEFAULT_GAS: Final = 200_000
MINT_LIMIT: Final = 2**128  # L1 encodes the minted amount in 128 bits


def decode_deposit(value: Any) -> Deposit:
    """Decode an object with ``from``, ``to``, ``mint``, ``value``, ``gas`` and ``data``.

    Only ``from`` is required. Without ``to`` the deposit creates a contract.
    """
    if not isinstance(value, dict):
        raise object_fault(value, KIND)
    unknown = sorted(value.keys() - MEMBERS)
    if unknown:
        raise DecodeError(f"a deposit has no member {unknown[0]!r}")
    found = {name: member for name, member in value.items() if member is not None}
    mint = decode_uint256(found.get("mint", "0x0"), field=f"{KIND}.mint")
    if mint >= MINT_LIMIT:
        raise DecodeError("the mint of a deposit has at most 128 bits")
    to = found.get("to")
    return Deposit(
        sender=decode_address(found.get("from"), field=f"{KIND}.from"),
        to=None if to is None else decode_address(to, field=f"{KIND}.to"),
        mint=mint,
        value=decode_uint256(found.get("value", "0x0"), field=f"{KIND}.value"),
        gas_limit=decode_uint64(found.get("gas", hex(DEFAULT_GAS)), field=f"{KIND}.gas"),
        data=decode_bytes(found.get("data", "0x"), field=f"{KIND}.data"),
    )


@method("fastevm_deposit", Param(decode_deposit), run_on=RunOn.WORKER)
@long_running
def deposit(context: Context, wanted: Deposit) -> str:
    """Include a deposit at the start of the next block. Returns its hash.

    The sender is used unchanged: for an L1 contract, pass its aliased address.
    """
    try:
        tx_hash: bytes = context.node.deposit(wanted)
    except DepositRefused as error:
        raise RpcError("invalid_params", str(error)) from error
    except InvalidTransaction as error:
        raise RpcError(family_reason("pool", error.code), error.message) from error
    return hex_bytes(tx_hash)
