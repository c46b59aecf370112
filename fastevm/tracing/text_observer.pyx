"""An observer that writes JSON text, to a spool if it becomes long."""

from fastevm.tracing.observer cimport Observer
from fastevm.rpc_types.text.json_writer cimport json_bytes, json_free


cdef class TextObserver(Observer):
    """Base class of observers that write text. By itself it writes nothing."""

    def __cinit__(self, *args: object, **options: object) -> None:
        self.opening = b""

    def __dealloc__(self) -> None:
        json_free(&self.writer)

    cdef bint spill(self) noexcept nogil:
        with gil:
            try:
                self.spill_now()
                return True
            except Exception as error:
                self.error = error
                return False

    cdef int spill_now(self) except -1:
        cdef size_t size = self.writer.out.size
        cdef bytes text = json_bytes(&self.writer)
        if self.spilled == 0:
            self.start = self.spool.append(self.opening)
        self.spool.append(text)
        self.spilled += size
        self.writer.out.size = 0
        return 0
