# What pyrevm asks of a message before it runs.
from libc.stdint cimport int64_t, uint64_t

from fastevm.evm.machine cimport EVM
from fastevm.core.spec.schedule cimport ForkSchedule


cdef class SentMessage:
    """A message as it was sent. ``before``: the gas that a transaction pays before it runs."""
    cdef readonly object caller, to   # addresses as text; `to` None: it creates a contract
    cdef readonly bytes data
    cdef readonly object value, gas_price
    cdef readonly uint64_t gas_limit
    cdef readonly int64_t before


cdef class Rules:
    """The rules of a fork, ``limit`` on the size of code in place of its own."""
    cdef readonly ForkSchedule schedule
    cdef readonly str shown_name
    cdef readonly uint64_t refund_quotient
    cdef bint has_access_lists
    cdef int64_t base, creation, word, zero, nonzero, list_address, list_slot, blob_gas
    cdef Py_ssize_t max_initcode

    # Check a message, and set ``before``. RuntimeError for one that may not run.
    # `admit_bare`: of a call whose TxEnv says nothing.
    cdef int admit_bare(self, EVM evm, SentMessage sent, bytes sender, uint64_t block_gas) except -1
    cdef int admit(
        self, EVM evm, SentMessage sent, bytes sender, uint64_t block_gas, object env
    ) except -1
    cdef int check_terms(self, EVM evm, SentMessage sent, uint64_t block_gas, object env) except -1
    cdef int check_sender(self, EVM evm, SentMessage sent, bytes sender, object env) except -1
    cdef int64_t intrinsic_gas(self, bytes data, bint creates) noexcept
