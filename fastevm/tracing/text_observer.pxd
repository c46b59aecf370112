# An observer that writes JSON text, which goes to a spool as it becomes long.
from fastevm.tracing.observer cimport Observer
from fastevm.rpc_types.text.json_writer cimport JsonText


cdef enum:
    SPILL_AT = 1024 * 1024    # bytes of text in memory


cdef class TextObserver(Observer):
    cdef JsonText writer
    cdef bytes opening        # of the text in the spool, before what was written
    cdef object spool         # what takes the text when it is long; None: all stays in memory
    cdef bint spills          # there is a spool
    cdef size_t start         # of the text in the spool
    cdef size_t spilled       # bytes of it there, without the opening

    # Hand the text so far to the spool. False: an error was kept.
    cdef bint spill(self) noexcept nogil
    # The same with the GIL.
    cdef int spill_now(self) except -1
