# Sets up transient storage, warm accounts and the sender's nonce before a message runs.
from fastevm.core.interpreter.machine cimport Message
from fastevm.core.state.world cimport World


cdef class MessageSetup:
    """Transient storage of earlier messages, an access list, and the nonce of a creation's sender.
    """
    cdef readonly dict transient   # (address of 20 bytes, slot) -> value, not zero
    cdef readonly tuple warm       # (address of 20 bytes, slots), warm from the start

    # Writes the setup to the world. Call it after world_begin_transaction, before machine_start.
    cdef int apply(self, World* w, const Message* message) except -1
    # Keeps the transient storage of the world for later messages. Call it before the message's
    # transaction ends.
    cdef int remember(self, const World* w) except -1
