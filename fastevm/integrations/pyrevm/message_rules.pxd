# The checks that pyrevm applies to a message before execution.
from libc.stdint cimport int64_t, uint64_t

from fastevm.evm.machine cimport EVM
from fastevm.core.spec.schedule cimport ForkSchedule


cdef class SentMessage:
    """A sent message. ``before``: intrinsic gas of the transaction."""
    cdef readonly object caller, to   # addresses as str; `to` None: creation
    cdef readonly bytes data
    cdef readonly object value, gas_price
    cdef readonly uint64_t gas_limit
    cdef readonly int64_t before


cdef class Rules:
    """The rules of a fork; ``limit`` replaces its code size limit."""
    cdef readonly ForkSchedule schedule
    cdef readonly str shown_name
    cdef readonly uint64_t refund_quotient
    cdef bint has_access_lists
    cdef int64_t base, creation, word, zero, nonzero, list_address, list_slot, blob_gas
    cdef Py_ssize_t max_initcode

    # Checks a message and sets ``before``. Raises RuntimeError if it is invalid.
    # `admit_bare`: for a call whose TxEnv is empty.
    cdef int admit_bare(self, EVM evm, SentMessage sent, bytes sender, uint64_t block_gas) except -1
    cdef int admit(
        self, EVM evm, SentMessage sent, bytes sender, uint64_t block_gas, object env
    ) except -1
    cdef int check_terms(self, EVM evm, SentMessage sent, uint64_t block_gas, object env) except -1
    cdef int check_sender(self, EVM evm, SentMessage sent, bytes sender, object env) except -1
    cdef int64_t intrinsic_gas(self, bytes data, bint creates) noexcept
