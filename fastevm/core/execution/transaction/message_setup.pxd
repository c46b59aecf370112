# Transient storage, warm accounts and a nonce for a message, besides state and block.
from fastevm.core.interpreter.machine cimport Message
from fastevm.core.state.world cimport World


cdef class MessageSetup:
    """Transient storage of earlier messages, an access list, and the nonce of a creation's sender.
    """
    cdef readonly dict transient   # (address of 20 bytes, slot) -> value, not zero
    cdef readonly tuple warm       # (address of 20 bytes, slots), warm from the start

    # Apply it after the message's transaction begins, before the message starts.
    cdef int apply(self, World* w, const Message* message) except -1
    # Save it before the message's transaction ends.
    cdef int remember(self, const World* w) except -1
