# Logs of the executing account: LOG0 to LOG4.
from libc.stdint cimport int64_t, uint8_t, uint32_t

from fastevm.core.interpreter.frame cimport written
from fastevm.core.interpreter.machine cimport Frame
from fastevm.core.interpreter.memory cimport memory_span
from fastevm.core.interpreter.status cimport OUT_OF_GAS, STATIC_VIOLATION, Status
from fastevm.core.primitives.intrinsics cimport unlikely
from fastevm.core.primitives.word cimport Word
from fastevm.core.spec.constants cimport LOG_BYTE_COST
from fastevm.core.state.world cimport world_log


cdef inline Status op_log(Frame* f, Word* sp, uint32_t topics) noexcept nogil:
    cdef size_t size = sp[1].d[0]
    cdef const uint8_t* data = NULL
    if unlikely(f.is_static):
        return STATIC_VIOLATION
    f.gas = memory_span(f, &sp[0], &sp[1], f.gas)
    if f.gas < 0:
        return OUT_OF_GAS
    f.gas -= <int64_t>size * LOG_BYTE_COST
    if f.gas < 0:
        return OUT_OF_GAS
    if size != 0:
        data = f.memory + sp[0].d[0]
    return written(world_log(f.world, &f.account.address, &sp[2], topics, data, size))
