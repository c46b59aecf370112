"""Logs of a finished execution as packed bytes, unpacked into values on first access.

Unpacking a log takes longer than executing LOG, and most callers read no logs.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memset

from fastevm.core.primitives.word cimport Word, word_store
from fastevm.core.state.world cimport LogRecord, World

from fastevm.core.execution.types import Log


cdef struct Head:
    uint8_t address[20]
    uint8_t topic_count
    size_t size


cdef bytes pack_logs(const World* w):
    """Packs the logs of a world. Each log is a head, the topics as words, and the data."""
    cdef size_t i
    cdef size_t total = 0
    cdef const LogRecord* log
    cdef Head head
    cdef bytes packed
    cdef char* at
    memset(&head, 0, sizeof(head))
    for i in range(w.log_count):
        total += sizeof(Head) + w.logs[i].topic_count * sizeof(Word) + w.logs[i].size
    packed = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>total)
    at = PyBytes_AS_STRING(packed)
    for i in range(w.log_count):
        log = &w.logs[i]
        memcpy(head.address, log.address.b, 20)
        head.topic_count = <uint8_t>log.topic_count
        head.size = log.size
        memcpy(at, &head, sizeof(Head))
        at += sizeof(Head)
        memcpy(at, log.topics, log.topic_count * sizeof(Word))
        at += log.topic_count * sizeof(Word)
        if log.size:
            memcpy(at, log.data, log.size)
        at += log.size
    return packed


cdef tuple unpack_logs(bytes packed):
    """Returns the logs as values; an empty tuple for None."""
    cdef const char* at
    cdef const char* end
    cdef Head head
    cdef Word word
    cdef uint8_t topic[32]
    cdef list found = []
    cdef list topics
    memset(&head, 0, sizeof(head))
    if packed is None:
        return ()
    at = PyBytes_AS_STRING(packed)
    end = at + PyBytes_GET_SIZE(packed)
    while at < end:
        memcpy(&head, at, sizeof(Head))
        at += sizeof(Head)
        topics = []
        for _ in range(head.topic_count):
            memcpy(&word, at, sizeof(Word))
            at += sizeof(Word)
            word_store(topic, &word)
            topics.append(topic[:32])
        found.append(Log(head.address[:20], tuple(topics), at[:head.size]))
        at += head.size
    return tuple(found)
