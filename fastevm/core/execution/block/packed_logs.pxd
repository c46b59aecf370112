# Logs of a finished run as packed bytes, unpacked into values at the first access.
from fastevm.core.state.world cimport World


cdef bytes pack_logs(const World* w)
cdef tuple unpack_logs(bytes packed)
