# The Python class ``EVM``: owns a layer, a world and a machine.
cimport cython
from libc.stdint cimport int64_t, uint64_t

from fastevm.evm.base cimport EvmBase
from fastevm.evm.result cimport ExecutionResult
from fastevm.core.execution.transaction.transact cimport TxRun
from fastevm.core.execution.transaction.transaction cimport Transaction
from fastevm.core.interpreter.status cimport Status
from fastevm.core.interpreter.machine cimport Message, TransactionContext
from fastevm.core.primitives.cancellation cimport NO_REQUEST
from fastevm.core.primitives.intrinsics cimport atomic_load_int, atomic_store_int
from fastevm.core.simulation.deadline cimport has_deadline


cdef class EVM(EvmBase):
    @cython.final
    cdef int serve(self, Status status) except -1

    @cython.final
    cdef int afford(self, const Message* message) except -1

    @cython.final
    cdef object limited(self, object timeout, object run, tuple args, dict options)

    @cython.final
    cdef object special(self, tuple wishes, object run, tuple args, dict options)

    @cython.final
    cdef object listed(
        self, object access_list, object run, tuple args, dict options, object timeout,
        object trace
    )

    # Clears the requests of an earlier `cancel`.
    cdef inline void clear_requests(self) noexcept:
        # Checks first: there is rarely a request to clear, and a load is cheap.
        if atomic_load_int(&self.overdue) or atomic_load_int(<int*>&self.pause):
            atomic_store_int(&self.overdue, False)
            atomic_store_int(<int*>&self.pause, NO_REQUEST)

    # Clears the requests before a new execution, unless its time limit has done so.
    cdef inline int forget_requests(self) except -1:
        if self.running:
            self.check_idle()
        if self.time_limit is None:
            self.clear_requests()
        return 0

    # Whether a new execution has a time limit: ``timeout``, or the deadline of the thread.
    cdef inline bint is_limited(self, object timeout) noexcept:
        return timeout is not None or (self.time_limit is None and has_deadline())

    @cython.final
    cdef int finish_watch(self) except -1

    @cython.final
    cdef ExecutionResult message(
        self, const Message* message, const TransactionContext* terms, bytes data, bint commit
    )

    @cython.final
    cdef int keep(self) except -1

    @cython.final
    cdef int begin(self, int64_t gas) except -1

    @cython.final
    cdef int end(self) except -1

    @cython.final
    cdef int serve_or_abandon(self, TxRun* run) except -1

    @cython.final
    cdef ExecutionResult run(self, const Message* message, const TransactionContext* terms)

    @cython.final
    cdef ExecutionResult run_resolved(
        self, const Message* message, const TransactionContext* terms, bytes data
    )

    @cython.final
    cdef ExecutionResult run_transaction(self, Transaction source, uint64_t misses)

    @cython.final
    cdef int ask_ahead(self, bytes sender, object to, bytes data, object value) except -1

    @cython.final
    cdef ExecutionResult result_of(self, Status status)
