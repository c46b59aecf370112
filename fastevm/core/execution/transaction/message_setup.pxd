# What a message finds besides the state and the block.
from fastevm.core.interpreter.machine cimport Message
from fastevm.core.state.world cimport World


cdef class MessageSetup:
    """Transient storage of earlier messages, an access list, the nonce of a creation's sender."""
    cdef readonly dict transient   # (address of 20 bytes, slot) -> value, not zero
    cdef readonly tuple warm       # (address of 20 bytes, slots), warm from the start

    # In the message's transaction, before it starts.
    cdef int apply(self, World* w, const Message* message) except -1
    # Before its transaction ends.
    cdef int remember(self, const World* w) except -1
