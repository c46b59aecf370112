"""Reads the changes of a call from a world, and the accounts and slots that the call accessed."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from libc.string cimport memset

from fastevm.core.primitives.word cimport word_copy, word_eq, word_to_int
from fastevm.core.state.account cimport Account, Slot
from fastevm.core.state.code cimport Code, code_release, code_retain
from fastevm.core.state.reader cimport READ_FOUND, AccountData
from fastevm.core.state.world cimport World

from fastevm.core.simulation.values import AccountChange


cdef bytes code_bytes(const Code* code):
    return b"" if code == NULL else code.bytes[:code.size]


cdef dict slot_changes(const World* w, const Account* a):
    """Returns slot -> (before, after) for the slots that the current transaction wrote."""
    cdef size_t i
    cdef const Slot* s
    found = {}
    if a.slot_mask:
        for i in range(<size_t>a.slot_mask + 1):
            s = a.slots[i]
            if s != NULL and s.written_tx == w.tx and not word_eq(&s.original, &s.current):
                found[word_to_int(&s.key)] = (word_to_int(&s.original), word_to_int(&s.current))
    return found


cdef list warm_entries(const World* w):
    cdef size_t i, j
    cdef const Account* a
    cdef const Slot* s
    found = []
    for i in range(w.account_count):
        a = w.account_list[i]
        if a.warm_tx != w.tx:
            continue
        slots = []
        if a.slot_mask:
            for j in range(<size_t>a.slot_mask + 1):
                s = a.slots[j]
                if s != NULL and s.warm_tx == w.tx:
                    slots.append(word_to_int(&s.key))
        found.append((a.address.b[:20], tuple(sorted(slots))))
    return sorted(found)


cdef dict looked_at(const World* w):
    cdef size_t i, j
    cdef const Account* a
    found = {}
    for i in range(w.account_count):
        a = w.account_list[i]
        slots = []
        if a.slot_mask:
            for j in range(<size_t>a.slot_mask + 1):
                if a.slots[j] != NULL:
                    slots.append(word_to_int(&a.slots[j].key))
        found[a.address.b[:20]] = slots
    return found


cdef class AccountsBefore:
    """Records the accounts of a world before a call and returns the differences after it."""

    def __dealloc__(self) -> None:
        self.forget()
        PyMem_RawFree(self.before)

    cdef int forget(self) except -1:
        cdef size_t i
        for i in range(self.count):
            code_release(self.before[i].code)
        self.count = 0
        return 0

    cdef int take(self, const World* w) except -1:
        cdef size_t i
        cdef const Account* a
        cdef void* larger
        self.forget()
        if w.account_count > self.capacity:
            larger = PyMem_RawRealloc(self.before, w.account_count * 2 * sizeof(AccountBefore))
            if larger == NULL:
                raise MemoryError
            self.before = <AccountBefore*>larger
            self.capacity = w.account_count * 2
        for i in range(w.account_count):
            a = w.account_list[i]
            word_copy(&self.before[i].balance, &a.balance)
            self.before[i].nonce = a.nonce
            self.before[i].code = a.code
            code_retain(a.code)
            self.count += 1
        return 0

    cdef int read(self, const World* w, size_t index, AccountBefore* out) except -1:
        """Reads an account as it was before the call: from the record, or from the base state if
        the world had not loaded the account then.
        """
        cdef AccountData data
        memset(&data, 0, sizeof(data))
        if index < self.count:
            out[0] = self.before[index]
            return 0
        memset(out, 0, sizeof(AccountBefore))
        if w.reader.account(
            w.reader.base, &w.account_list[index].address, &data
        ) == READ_FOUND:
            word_copy(&out.balance, &data.balance)
            out.nonce = data.nonce
            out.code = data.code
        return 0

    cdef dict changes(self, const World* w):
        cdef size_t i
        cdef const Account* a
        cdef AccountBefore before
        memset(&before, 0, sizeof(before))
        found = {}
        for i in range(w.account_count):
            a = w.account_list[i]
            self.read(w, i, &before)
            balance = nonce = code = None
            if not word_eq(&before.balance, &a.balance):
                balance = (word_to_int(&before.balance), word_to_int(&a.balance))
            if before.nonce != a.nonce:
                nonce = (before.nonce, a.nonce)
            if before.code != a.code and code_bytes(before.code) != code_bytes(a.code):
                code = (code_bytes(before.code), code_bytes(a.code))
            storage = slot_changes(w, a)
            if storage or (balance, nonce, code) != (None, None, None):
                found[a.address.b[:20]] = AccountChange(
                    balance=balance, nonce=nonce, code=code, storage=storage
                )
        return found
