# Logs of a finished run, packed into bytes and made into values only when somebody reads them.
from fastevm.state.world cimport World


cdef bytes pack_logs(const World* w)
cdef tuple unpack_logs(bytes packed)
