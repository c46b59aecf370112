# What an execution on an ``EVM`` gave.


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
    cdef readonly object trace        # None: it was not asked for

    cdef tuple values(self)
