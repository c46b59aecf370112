# Signals during long executions: the machine pauses at its next jump, and Python handles the
# signal.
from fastevm.core.interpreter.machine cimport Machine


cdef enum:
    # an execution with more gas checks that our signal handlers are installed
    LONG_RUN_GAS = 300_000_000


# Call it before an execution that can pause. On the main thread it sets `m.cancel` to a flag of
# this module. The machine then returns SUSPENDED after a signal, and once near the start of a long
# execution.
cdef void begin_interruptible(Machine* m, bint is_long) noexcept
# Call it after SUSPENDED. Runs Python's signal handlers and raises what they raise; the exception
# ends the execution.
cdef int serve_signals() except -1

# Call it before an execution that cannot pause. On the main thread, a signal then cancels the
# execution. Returns False without effect on another thread, or if such an execution is in progress.
cdef bint begin_stoppable(bint* cancelled, bint is_long) except -1
# Call it after an execution for which ``begin_stoppable`` returned True. If a signal cancelled the
# execution, runs Python's handlers and returns True: the caller starts the execution again.
cdef bint end_stoppable(bint* cancelled) except -1
# Call it instead of ``end_stoppable`` if the execution raised. Stops watching for signals.
cdef void drop_stoppable() noexcept
