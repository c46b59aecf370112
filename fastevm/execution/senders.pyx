"""The senders of many transactions at once, on threads."""
import os
from threading import Thread

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport int64_t
from libc.string cimport memset

from fastevm.execution.sender_recovery cimport (
    authorities_are_known, sender_state_of, tx_recover_many,
)
from fastevm.execution.transaction cimport Transaction
from fastevm.execution.transaction_data cimport SENDER_UNKNOWN, Tx
from fastevm.primitives.buffer cimport Buffer, buffer_free
from fastevm.primitives.intrinsics cimport atomic_increment


# A recovery takes about 10 us in vectors of eight and 30 us alone, the start of a thread about
# 30 us: a thread pays from eight signatures on.
cdef enum:
    SIGNATURES_PER_THREAD = 8


cdef struct Batch:
    Tx** transactions
    int64_t count
    int64_t taken             # groups taken by threads, changed atomically
    bint no_memory


cdef void recover_batch(Batch* batch) noexcept nogil:
    cdef Buffer scratch
    cdef int64_t first, size
    memset(&scratch, 0, sizeof(scratch))
    while True:
        first = (atomic_increment(&batch.taken) - 1) * SIGNATURES_PER_THREAD
        if first >= batch.count:
            break
        size = min(batch.count - first, <int64_t>SIGNATURES_PER_THREAD)
        if not tx_recover_many(batch.transactions + first, size, &scratch):
            batch.no_memory = True
    buffer_free(&scratch)


cdef class _Work:
    """A batch that threads share; keeps the transactions alive."""
    cdef Batch batch
    cdef list transactions

    def __cinit__(self, transactions):
        cdef Py_ssize_t i
        cdef Transaction transaction
        self.transactions = list(transactions)
        self.batch.count = len(self.transactions)
        self.batch.transactions = <Tx**>PyMem_RawMalloc((self.batch.count + 1) * sizeof(Tx*))
        if self.batch.transactions == NULL:
            raise MemoryError
        for i in range(self.batch.count):
            transaction = <Transaction?>self.transactions[i]
            self.batch.transactions[i] = &transaction.c

    def __dealloc__(self):
        PyMem_RawFree(self.batch.transactions)

    def signatures(self):
        cdef int64_t i, unknown = 0
        cdef Tx* tx
        for i in range(self.batch.count):
            tx = self.batch.transactions[i]
            unknown += sender_state_of(tx) == SENDER_UNKNOWN
            if not authorities_are_known(tx):
                unknown += tx.authorization_count
        return unknown

    def run(self):
        with nogil:
            recover_batch(&self.batch)

    def finish(self):
        if self.batch.no_memory:
            raise MemoryError


def recover_senders(transactions, *, threads=None):
    """Recover the senders and authorities of many transactions at once, without the GIL.

    ``transactions``: an iterable of `Transaction`. ``threads``: how many threads share the work, by
    default one per core; fewer for small batches. ``transaction.sender`` is then known; it is None
    for an invalid signature (``transaction.signature_fault`` says why).
    """
    work = _Work(transactions)
    useful = max(1, work.signatures() // SIGNATURES_PER_THREAD)
    count = min(useful, threads if threads is not None else os.cpu_count() or 1)
    helpers = [Thread(target=work.run, name="senders", daemon=True) for _ in range(count - 1)]
    for helper in helpers:
        helper.start()
    work.run()
    for helper in helpers:
        helper.join()
    work.finish()
