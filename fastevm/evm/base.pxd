# What an ``EVM`` holds; one owner.
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
    cdef list layers                  # snapshots to go back to
    cdef object snapshot_count        # so far; also the number of the next one
    cdef MessageSetup setup           # what messages find besides the state; None: nothing
    cdef HostPrecompiles host         # precompiles in Python; None: none
    cdef Watch watch                  # what watches runs; None: nothing
    cdef Watch active                 # what watches the run under way
    cdef object hooks_set             # what it was made of
    cdef TxOptions options            # rules that transactions skip
    cdef frozenset skipped            # their names
    cdef ForkSchedule fork_schedule   # `schedule` without the limit below
    cdef object size_limit            # of code, in bytes; None: the fork's own; 0: none
    cdef bint is_calling              # a precompile or a hook in Python is running
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
    cdef int check_readable(self) except -1

    @cython.final
    cdef int limit_code(self) except -1

    @cython.final
    cdef int put_precompiles(self, HostPrecompiles host) except -1

    @cython.final
    cdef int set_schedule(self, ForkSchedule schedule) except -1
