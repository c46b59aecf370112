"""Tracers that use a profile: gas by pc and by function, executed pcs, branches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fastevm.core.primitives.hex import hex_bytes
from fastevm.tracing.edges import EdgeProfile
from fastevm.tracing.profile import Profile
from fastevm.tracing.spool import Spool
from fastevm.tracing.tracer import Finished
from fastevm.tracing.values import TracingError

Json = dict[str, Any]
GAS_TRACER: Final = "gasTracer"
COVERAGE_TRACER: Final = "coverageTracer"
EDGE_TRACER: Final = "edgeTracer"


class ProfileTracer:
    """Base class of profile tracers. Their results do not depend on the finished transaction.

    Raises TracingError if options are given, because profile tracers have none.
    """

    needs_states = False
    profile: Callable[[], Profile] = Profile

    def __init__(self, config: Mapping[str, Any], budget: int, _: Spool | None) -> None:
        if config:
            raise TracingError("this tracer accepts no options")
        self.observer: Profile = self.profile()

    def result(self, finished: Finished | None = None) -> Json:
        raise NotImplementedError


class GasTracer(ProfileTracer):
    """Measures gas by pc and by function. The gas at the pc of a call excludes the callee's gas."""

    def result(self, finished: Finished | None = None) -> Json:
        functions = [
            {
                "address": hex_bytes(address),
                "selector": None if selector is None else hex_bytes(selector),
                "calls": calls,
                "gas": gas,
                "ownGas": own,
            }
            for (address, selector), (calls, gas, own) in self.observer.calls().items()
        ]
        return {"code": self._pcs(False), "initcode": self._pcs(True), "functions": functions}

    def _pcs(self, creates: bool) -> Json:
        return {
            hex_bytes(address): pcs for address, pcs in self.observer.gas_by_pc(creates).items()
        }


class CoverageTracer(ProfileTracer):
    """Reports the executed pcs, separately for code and init code."""

    def result(self, finished: Finished | None = None) -> Json:
        return {
            name: {hex_bytes(address): pcs for address, pcs in self.observer.pcs(creates).items()}
            for name, creates in (("code", False), ("initcode", True))
        }


class EdgeTracer(ProfileTracer):
    """Reports the branches taken: pairs of the pc of a JUMP or JUMPI and the pc after it."""

    profile = EdgeProfile
    observer: EdgeProfile

    def result(self, finished: Finished | None = None) -> Json:
        return {
            name: {
                hex_bytes(address): edges
                for address, edges in self.observer.branches(creates).items()
            }
            for name, creates in (("code", False), ("initcode", True))
        }
