# The in-memory machine at the top of the library: a layer, a world and a machine with one owner.
cimport cython
from libc.stdint cimport int64_t, uint64_t

from fastevm.execution.message_setup cimport MessageSetup
from fastevm.execution.transact cimport TxRun
from fastevm.execution.transaction cimport Transaction
from fastevm.interpreter.status cimport Status
from fastevm.interpreter.machine cimport BlockContext, Machine, Message, TransactionContext
from fastevm.primitives.hashes cimport Address, Hash
from fastevm.spec.schedule cimport ForkSchedule
from fastevm.state.layer cimport Layer
from fastevm.state.world cimport World


cdef class ExecutionResult:
    """What a call or a transaction gave; immutable."""
    cdef readonly bint success
    cdef readonly bytes output
    cdef readonly object gas_used
    cdef readonly object gas_refunded
    cdef bytes packed_logs            # None once they are values
    cdef tuple log_values             # None until somebody asks
    cdef readonly str error
    cdef readonly bytes created_address

    cdef tuple values(self)


cdef class EVM:
    cdef World* world
    cdef Machine* machine
    cdef BlockContext context
    cdef TransactionContext transaction
    cdef Hash* ancestors
    cdef Layer layer
    cdef readonly ForkSchedule schedule
    cdef list layers                  # snapshots to go back to
    cdef object snapshot_count        # so far; also the number of the next one
    cdef MessageSetup setup           # what messages find besides the state; None: nothing
    cdef object read_trace            # reads what a message has recorded; None: not traced
    cdef object time_limit            # of the run under way, in seconds; None: none
    cdef bint pause                   # what the machine looks at where nobody else pauses it
    cdef int* pause_request           # where a request of ``cancel`` goes; NULL: nowhere
    cdef int overdue                  # the run under way is to end
    cdef bint running                 # a run holds `layer`, the block and the machine

    @cython.final
    cdef int check_idle(self) except -1
    cdef int put_ancestors(self, list hashes) except -1

    @cython.final
    cdef int restore_block(self, object block, object hashes) except -1

    @cython.final
    cdef int change(self, object address, dict fields) except -1

    @cython.final
    cdef int serve(self) except -1

    @cython.final
    cdef object limited(self, object timeout, object run, tuple args, dict options)

    @cython.final
    cdef int keep(self) except -1

    @cython.final
    cdef int begin(self, int64_t gas) except -1

    @cython.final
    cdef int end(self) except -1

    @cython.final
    cdef int serve_or_abandon(self, TxRun* run) except -1

    @cython.final
    cdef int warm(self, const Address* address) except -1

    @cython.final
    cdef ExecutionResult run(self, const Message* message, const TransactionContext* terms)

    @cython.final
    cdef ExecutionResult run_settled(
        self, const Message* message, const TransactionContext* terms, bytes data
    )

    @cython.final
    cdef ExecutionResult run_transaction(self, Transaction source, uint64_t misses)

    @cython.final
    cdef int ask_ahead(self, bytes sender, object to, bytes data, object value) except -1

    @cython.final
    cdef ExecutionResult result_of(self, Status status)
