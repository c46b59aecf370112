"""Sets up transient storage, warm accounts and the sender's nonce before a message runs."""

from fastevm.core.execution.transaction.arguments cimport word_argument
from fastevm.core.execution.transaction.transaction_lists cimport access_list_entries
from fastevm.core.interpreter.machine cimport CREATE_MESSAGE, Message
from fastevm.core.primitives.bytes_like cimport parse_address, slot_number
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport (
    Word, word_from_int, word_is_zero, word_to_int,
)
from fastevm.core.state.account cimport Account, Slot
from fastevm.core.state.world cimport (
    TransientSlot, World, world_account, world_set_nonce, world_slot, world_transient_set,
    world_warm_account, world_warm_slot,
)


cdef int use_nonce(World* w, const Address* sender) except -1:
    """Increments the sender's nonce before a creation."""
    cdef Account* account = world_account(w, sender)
    if account == NULL or not world_set_nonce(w, account, account.nonce + 1):
        raise MemoryError
    return 0


cdef int warm_slots(World* w, const Address* address, tuple slots) except -1:
    """Marks an account and some of its slots warm (EIP-2929)."""
    cdef Account* account = world_account(w, address)
    cdef Slot* slot
    cdef Word key
    if account == NULL:
        raise MemoryError
    world_warm_account(w, account)
    for number in slots:
        word_from_int(&key, number)
        slot = world_slot(w, account, &key)
        if slot == NULL:
            raise MemoryError
        world_warm_slot(w, account, slot)
    return 0


cdef class MessageSetup:
    def __init__(self, values: object, access_list: object = ()) -> None:
        cdef Address key
        cdef Word slot, word
        self.transient = {}
        self.warm = tuple(access_list_entries(access_list, "access_list"))
        for (address, number), value in dict(values).items():
            parse_address(address, &key, "address")
            word_argument(&slot, slot_number(number, "slot"), "slot")
            word_argument(&word, value, "value")
            if not word_is_zero(&word):
                self.transient[key.b[:20], word_to_int(&slot)] = word_to_int(&word)

    cdef int apply(self, World* w, const Message* message) except -1:
        cdef Account* account
        cdef Address address
        cdef Word slot, value
        if message.kind == CREATE_MESSAGE:
            use_nonce(w, &message.sender)
        for owner, slots in self.warm:
            parse_address(owner, &address, "address")
            warm_slots(w, &address, slots)
        for (owner, number), amount in self.transient.items():
            parse_address(owner, &address, "address")
            word_from_int(&slot, number)
            word_from_int(&value, amount)
            account = world_account(w, &address)
            if account == NULL or not world_transient_set(w, account, &slot, &value):
                raise MemoryError
        return 0

    cdef int remember(self, const World* w) except -1:
        cdef const TransientSlot* found
        cdef size_t i
        self.transient = {}
        if w.transient_count == 0:
            return 0
        for i in range(w.transient_mask + 1):
            found = w.transient[i]
            if found != NULL and found.tx == w.tx and not word_is_zero(&found.value):
                owner = found.account.address.b[:20]
                self.transient[owner, word_to_int(&found.key)] = word_to_int(&found.value)
        return 0
