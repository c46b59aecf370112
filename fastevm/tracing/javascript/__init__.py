"""JavaScript tracers, with the interface of go-ethereum, in a separate process.

The EVM runs first and records its steps. Then a worker process reads the records in batches and
calls the functions of the tracer. The tracer's reads of the state (``db``) are answered from the
state before the transaction and the recorded changes up to the step. A batch ends before each
change of state, so each read returns the state at its step.

The worker has a memory limit, and is killed at the request's deadline. QuickJS has no access to
files, network or modules.
"""

from fastevm.tracing.javascript.tracer import JavaScriptTracer

__all__ = ["JavaScriptTracer"]
