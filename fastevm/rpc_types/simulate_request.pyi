"""Reads the params of eth_simulateV1 into a plan."""

from fastevm.core.simulation.plan import Plan

def read_request(params: bytes) -> tuple[Plan, bytes] | None: ...
