# Signals during long executions: the machine pauses at its next jump, Python handles them.
from fastevm.core.interpreter.machine cimport Machine


cdef enum:
    LONG_RUN_GAS = 300_000_000  # with more gas, check that Python has not replaced our handler


# On the main thread the machine returns SUSPENDED after a signal, and once in a long execution.
cdef int begin_interruptible(Machine* m, bint is_long) except -1
# After SUSPENDED: run Python's signal handlers; an exception ends the execution.
cdef int serve_signals() except -1

# For an execution that cannot pause: a signal on the main thread cancels it. False without effect
# if this is another thread or such an execution is already in progress.
cdef bint begin_stoppable(bint* cancelled, bint is_long) except -1
# Call it after an execution for which ``begin_stoppable`` returned True. Runs Python's handlers if
# a signal cancelled it; if none of them raises, returns True: start the execution again.
cdef bint end_stoppable(bint* cancelled) except -1
# The same for an execution that raised: stops watching for signals.
cdef void drop_stoppable() noexcept
