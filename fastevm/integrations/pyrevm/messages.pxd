# Messages that keep their changes, as in pyrevm.
from libc.stdint cimport uint64_t

from fastevm.integrations.pyrevm.message_rules cimport Rules, SentMessage
from fastevm.evm.machine cimport EVM
from fastevm.evm.result cimport ExecutionResult


cdef class Ended:
    """The last message, its result, and the gas that it would use as a transaction."""
    cdef readonly Rules rules
    cdef readonly SentMessage sent
    cdef readonly ExecutionResult outcome
    cdef readonly int opcode          # last executed opcode; 0 without code
    cdef readonly bytes target        # None if the message created a contract
    cdef readonly object schedule

    cdef object spent(self)


cdef class Messages:
    """The part of pyrevm's ``EVM`` that executes code."""
    cdef public EVM _evm
    cdef public Rules _rules
    cdef public uint64_t _gas_limit   # gas limit of the block, and default gas of messages
    cdef public dict _keys            # accounts read or changed: str -> 20 bytes
    cdef public object _tx            # TxEnv
    cdef public bint _is_bare         # whether the TxEnv is empty
    cdef public Ended _last           # None before the first and after a rejected message
    cdef public bint _has_run         # whether a message was executed since the block was set
    cdef public bint tracing

    cdef bytes key_of(self, object address)
    cdef SentMessage read(
        self, object caller, object to, object data, object value, object gas, object price
    )
    cdef Ended send(self, SentMessage sent, bytes sender, bytes to, bint static)
    cdef ExecutionResult run_bare(self, SentMessage sent, bytes sender, bytes to, bint static)
    cdef ExecutionResult run(self, SentMessage sent, bytes sender, bytes to, bint static)
    cdef dict options(self, SentMessage sent, bytes sender, bint static)
    cdef int pay(self, bytes sender, Ended ended) except -1
    cdef int summarise(self) except -1
