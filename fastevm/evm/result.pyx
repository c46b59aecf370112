"""``ExecutionResult``: the result of an execution on an ``EVM``."""

from fastevm.core.execution.block.packed_logs cimport unpack_logs

from importlib import import_module

from fastevm.core.execution.types import Log
from fastevm.errors import ExecutionFailed


SHOWN_OUTPUT = 64  # bytes of the output that ``repr`` shows


cdef class ExecutionResult:
    def __init__(self) -> None:
        raise TypeError("results come from EVM.call, EVM.transact and EVM.deploy")

    @property
    def logs(self) -> tuple[Log, ...]:
        """The logs in order; empty if the execution failed."""
        if self.log_values is None:
            self.log_values = unpack_logs(self.packed_logs)
            self.packed_logs = None
        return self.log_values

    def __bool__(self) -> bool:
        return self.success

    def check(self) -> ExecutionResult:
        """Returns this result. Raises ExecutionFailed, with the reason, if the execution failed."""
        if not self.success:
            raise ExecutionFailed(str(self.error), self)
        return self

    def __repr__(self) -> str:
        outcome = "success" if self.success else f"error={self.error!r}"
        output = self.output or b""
        shown = f"0x{output.hex()}"
        if len(output) > SHOWN_OUTPUT:
            shown = f"0x{output[:SHOWN_OUTPUT].hex()}... ({len(output)} bytes)"
        if self.created_address is not None:
            outcome += f", created_address=0x{self.created_address.hex()}"
        return f"ExecutionResult({outcome}, gas_used={self.gas_used}, output={shown})"

    def _repr_html_(self) -> str:
        """Returns an HTML table for notebooks: the outcome and the logs."""
        table = import_module("fastevm.evm.html_table").html_table
        outcome = [
            ("outcome", "success" if self.success else self.error),
            ("gas used", self.gas_used), ("gas refunded", self.gas_refunded),
            ("output", self.output or b""),
        ]
        if self.created_address is not None:
            outcome.append(("created", self.created_address))
        found = table("ExecutionResult", (), outcome)
        if self.logs:
            rows = [(log.address, *(log.topics + (b"",) * 4)[:4], log.data) for log in self.logs]
            header = ("address", "topic 0", "topic 1", "topic 2", "topic 3", "data")
            found += table("logs", header, rows)
        return found

    cdef tuple values(self):
        return (
            self.success, self.output, self.gas_used, self.gas_refunded, self.logs, self.error,
            self.created_address,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExecutionResult):
            return NotImplemented
        return self.values() == (<ExecutionResult>other).values()

    def __hash__(self) -> int:
        return hash(self.values())

    def __reduce__(self) -> object:
        return restore_result, (*self.values(), self.trace)


def restore_result(
    success: bool, output: bytes | None, gas_used: object, gas_refunded: object,
    logs: tuple[Log, ...], error: str | None, created_address: bytes | None, trace: object = None,
) -> ExecutionResult:
    """Restores a pickled result."""
    cdef ExecutionResult result = ExecutionResult.__new__(ExecutionResult)
    result.success = success
    result.output = output
    result.gas_used, result.gas_refunded = gas_used, gas_refunded
    result.log_values = logs
    result.error = error
    result.created_address = created_address
    result.trace = trace
    return result
