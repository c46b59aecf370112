# An observer that writes JSON text, to a spool if it becomes long.
from fastevm.tracing.observer cimport Observer
from fastevm.rpc_types.text.json_writer cimport JsonText


cdef enum:
    SPILL_AT = 1024 * 1024    # bytes of text in memory from which text is moved to the spool


cdef class TextObserver(Observer):
    cdef JsonText writer
    cdef bytes opening        # prefix of the text in the spool
    cdef object spool         # receives long text; None: all text stays in memory
    cdef bint spills          # whether there is a spool
    cdef size_t start         # position of the text in the spool
    cdef size_t spilled       # bytes of text in the spool, without the prefix

    # Moves the text to the spool. Returns False if an error was stored.
    cdef bint spill(self) noexcept nogil
    # Moves the text to the spool. Requires the GIL.
    cdef int spill_now(self) except -1
