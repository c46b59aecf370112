"""eth_createAccessList: the access list of a transaction (EIP-2930)."""

from __future__ import annotations

from collections.abc import Mapping

from fastevm import tracing
from fastevm.core.primitives.hex import quantity
from fastevm.rpc.block_id import BlockId
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import NEXT_BLOCK
from fastevm.rpc.dispatch.registry import RunOn, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.methods.calls import CALL, STATE_OVERRIDES
from fastevm.rpc_types.transactions import Json, access_list_json
from fastevm.simulate import AccountOverride, CallRequest


@method("eth_createAccessList", CALL, NEXT_BLOCK, STATE_OVERRIDES, run_on=RunOn.WORKER)
@long_running
def get_access_list(
    context: Context,
    request: CallRequest,
    block: BlockId,
    state_overrides: Mapping[bytes, AccountOverride],
) -> Json:
    """Return the access list, the gas used with this list, and the error if the call fails.

    A call without a gas price pays no fee, as in eth_call.
    """
    found = tracing.create_access_list(
        context.view(block).state(),
        request,
        state_overrides=state_overrides,
        gas_cap=context.limits.call_gas,
        timeout=context.limits.call_time,
        shows_base_fee=context.dialect.free_calls_see_base_fee,
    )
    answer: Json = {"accessList": access_list_json(found.access_list)}
    if found.error is not None:
        answer["error"] = found.error
    answer["gasUsed"] = quantity(found.gas_used)
    return answer
