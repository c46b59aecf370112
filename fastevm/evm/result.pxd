# The result of an execution on an ``EVM``.


cdef class ExecutionResult:
    """The immutable result of a call or a transaction."""
    cdef readonly bint success
    cdef readonly bytes output
    cdef readonly object gas_used
    cdef readonly object gas_refunded
    cdef bytes packed_logs            # None once they are decoded
    cdef tuple log_values             # None until first use
    cdef readonly str error
    cdef readonly bytes created_address
    cdef readonly object trace        # None if not requested

    cdef tuple values(self)
