"""Computes the gas with which calls and estimates on Arbitrum pay the L1 data fee."""

from fastevm.core.execution.arbitrum.l1_fee import call_gas, estimated_gas, unsigned_like
from fastevm.core.simulation.values import CallRequest, StateView


def pays_for_l1(view: StateView, request: CallRequest) -> bool:
    """Returns whether a request pays the L1 data fee: on Arbitrum, unless the request opts out."""
    return bool(view.schedule.parameters["arbos_version"]) and not request.skip_l1_charging


def estimated_l1_gas(view: StateView, request: CallRequest) -> int:
    """Returns the gas that an estimate adds for the L1 data fee."""
    return estimated_gas(view.layer, view.header.base_fee_per_gas or 0, _raw(request))


def l1_gas_of_call(view: StateView, request: CallRequest) -> int:
    """Returns the gas that a call pays for the L1 data fee before its code runs."""
    return call_gas(view.layer, view.header.base_fee_per_gas or 0, _raw(request))


def _raw(request: CallRequest) -> bytes:
    return unsigned_like(
        to=request.to,
        value=request.value,
        data=request.data,
        access_list=request.access_list,
        nonce=request.nonce,
        max_fee_per_gas=request.max_fee_per_gas or request.gas_price,
        max_priority_fee_per_gas=request.max_priority_fee_per_gas,
    )
