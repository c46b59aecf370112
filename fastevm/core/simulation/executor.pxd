# The executor of simulated chains.
from fastevm.core.interpreter.tracer cimport StepTrace
from fastevm.core.simulation.account_changes cimport AccountsBefore
from fastevm.core.simulation.chain cimport Halt, SimulatedChain
from fastevm.core.simulation.plan cimport Plan


cdef class ChainExecutor(SimulatedChain):
    cdef readonly object view
    cdef object options
    cdef list schedules         # ForkSchedule for each entry of `rules`; kept for the next run
    cdef AccountsBefore before  # accounts before the current call
    cdef StepTrace recorder     # records call trees
    cdef readonly dict extras   # index of a call -> CallExtras; None if no extras are requested
    cdef object last_header     # the last header that was read, with its hash and its ancestors
    cdef object last_hash
    cdef object last_ancestors
    cdef readonly dict touched  # address -> set of slots; None if not requested

    cdef int run_once(self, object view, Plan plan, object options) except -1
    cdef int begin(self, object view, Plan plan, object options) except -1
    cdef int read_parent(self) except -1
    cdef int read_hashes(self, bytes known) except -1
    cdef int read_constants(self) except -1
    cdef int read_rules(self) except -1
    cdef int open_world(self) except -1
    cdef int provide(self, Halt halt) except -1
    cdef int provide_fees(self) except -1
    cdef int start_tracing(self) except -1
    cdef int end_call(self) except -1
    cdef object extras_of_call(self)
    cdef int count_frames(self, list frames) except -1
    cdef int provide_deposits(self) except -1
    cdef int provide_requests(self) except -1
    cdef int provide_root(self) except -1
    cdef int renew_world(self) except -1
    cdef object failure(self, Halt halt)
