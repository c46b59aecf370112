# Ctrl-C and SIGTERM during long runs: the machine pauses at its next jump and Python serves them.
from fastevm.interpreter.machine cimport Machine


# The machine gives SUSPENDED when a signal came, if this is the main thread.
cdef int begin_interruptible(Machine* m) except -1
# After SUSPENDED: run Python's signal handlers, whose exception ends the run.
cdef int serve_signals() except -1
