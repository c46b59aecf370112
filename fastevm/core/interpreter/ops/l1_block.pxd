# BLOCKHASH on Arbitrum, where NUMBER returns the number of an L1 block.
from fastevm.core.interpreter.machine cimport Frame
from fastevm.core.interpreter.status cimport Status
from fastevm.core.primitives.word cimport Word


cdef Status blockhash_of_l1(Frame* f, Word* sp) noexcept nogil
