# The fields of an ``EVM``.
cimport cython

from fastevm.evm.hook_calls cimport HostPrecompiles, Watch
from fastevm.core.execution.transaction.message_setup cimport MessageSetup
from fastevm.core.execution.transaction.transaction_result cimport TxOptions
from fastevm.core.interpreter.machine cimport BlockContext, Machine, TransactionContext
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.spec.schedule cimport ForkSchedule
from fastevm.core.state.layer cimport Layer
from fastevm.core.state.world cimport World


cdef class EvmBase:
    cdef World* world
    cdef Machine* machine
    cdef BlockContext context
    cdef TransactionContext transaction
    cdef Hash* ancestors
    cdef Layer layer
    cdef readonly ForkSchedule schedule
    cdef list layers                  # states of the existing snapshots
    cdef object snapshot_count        # snapshots taken so far; also the number of the next one
    cdef MessageSetup setup           # initial transient storage of messages; None: none
    cdef HostPrecompiles host         # precompiles implemented in Python; None: none
    cdef Watch watch                  # observes every execution; may be None
    cdef Watch active                 # observes the current execution; may be None
    cdef object hooks_set             # the hooks that `watch` calls
    cdef TxOptions options            # rules that transactions skip
    cdef frozenset skipped            # the names of the rules in `options`
    cdef ForkSchedule fork_schedule   # `schedule` with the fork's own code size limit
    cdef object size_limit            # code size limit in bytes; None: the fork's own; 0: none
    cdef bint is_calling              # a precompile or a hook in Python is running
    cdef object time_limit            # seconds that the current execution may take; None: no limit
    cdef bint pause                   # pause flag of executions outside the main thread
    cdef int* pause_request           # where ``cancel`` writes its request; NULL: nothing runs
    cdef int overdue                  # the current execution, or an execution that starts, must end
    cdef bint running                 # an execution uses `layer`, the block and the machine

    @cython.final
    cdef int check_idle(self) except -1
    cdef int put_ancestors(self, list hashes) except -1

    @cython.final
    cdef int restore_block(self, object block, object hashes) except -1

    @cython.final
    cdef int change(self, object address, dict fields) except -1

    @cython.final
    cdef int check_readable(self) except -1

    @cython.final
    cdef int limit_code(self) except -1

    @cython.final
    cdef int put_precompiles(self, HostPrecompiles host) except -1

    @cython.final
    cdef int set_schedule(self, ForkSchedule schedule) except -1
