# Logs of a finished execution as packed bytes, unpacked into values on first access.
from fastevm.core.state.world cimport World


cdef bytes pack_logs(const World* w)
cdef tuple unpack_logs(bytes packed)
