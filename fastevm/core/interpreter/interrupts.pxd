# Ctrl-C and SIGTERM during long runs: the machine pauses at its next jump and Python serves them.
from fastevm.core.interpreter.machine cimport Machine


cdef enum:
    LONG_RUN_GAS = 300_000_000  # a run with more looks whether Python has put its own handler back


# The machine gives SUSPENDED when a signal came, if this is the main thread; once in a long run.
cdef int begin_interruptible(Machine* m, bint is_long) except -1
# After SUSPENDED: run Python's signal handlers, whose exception ends the run.
cdef int serve_signals() except -1

# A run that cannot pause: a signal on the main thread cancels it. False: nobody watches, because
# this is another thread or such a run is under way already.
cdef bint begin_stoppable(bint* cancelled, bint is_long) except -1
# After a run for which ``begin_stoppable`` gave True. Runs Python's signal handlers if a signal has
# cancelled it; if none of them raises, gives True: the run shall begin again, not cancelled.
cdef bint end_stoppable(bint* cancelled) except -1
# The same for a run that raises: nobody is watched any more.
cdef void drop_stoppable() noexcept
