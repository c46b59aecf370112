# Several observers of one run.
from fastevm.tracing.observer cimport Observer


cdef class PairObserver(Observer):
    cdef Observer first
    cdef Observer second

    # Whether the run goes on after what one of them made of the records; why not, is kept.
    cdef bint heard(self, Observer child, bint went_on) noexcept nogil
