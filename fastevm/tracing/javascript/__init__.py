"""Tracers in JavaScript, with the interface of go-ethereum, in a process of their own.

The EVM runs first and records its steps. Then a worker process reads them in batches and calls the
functions of the tracer. Its questions about the state (``db``) are answered from the state before
the transaction and from the changes that the records show up to the step. A batch ends before each
change, so every answer is that of the step.

The worker has a limit of memory, and the deadline of the request ends it. QuickJS has no access to
files, network or modules.
"""

from fastevm.tracing.javascript.tracer import JavaScriptTracer

__all__ = ["JavaScriptTracer"]
