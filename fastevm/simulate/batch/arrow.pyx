"""Columns as an Arrow C stream, for pyarrow, polars, pandas and DuckDB. Needs no dependency.

A stream has one batch, in the layout of the Arrow C data interface and C stream interface. Every
array keeps the bytes of its buffers alive until the consumer releases the array.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.pycapsule cimport (
    PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New,
)
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.errno cimport EINVAL
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from collections.abc import Sequence


cdef enum:
    BUFFERS_LIMIT = 3         # buffers of a column: validity, offsets, values


cdef struct ArrowSchema:
    const char* format
    const char* name
    const char* metadata
    int64_t flags
    int64_t n_children
    ArrowSchema** children
    ArrowSchema* dictionary
    void (*release)(ArrowSchema*) noexcept
    void* private_data


cdef struct ArrowArray:
    int64_t length
    int64_t null_count
    int64_t offset
    int64_t n_buffers
    int64_t n_children
    const void** buffers
    ArrowArray** children
    ArrowArray* dictionary
    void (*release)(ArrowArray*) noexcept
    void* private_data


cdef struct ArrowArrayStream:
    int (*get_schema)(ArrowArrayStream*, ArrowSchema*) noexcept
    int (*get_next)(ArrowArrayStream*, ArrowArray*) noexcept
    const char* (*get_last_error)(ArrowArrayStream*) noexcept
    void (*release)(ArrowArrayStream*) noexcept
    void* private_data


cdef const char* STREAM = b"arrow_array_stream"
cdef const char* STRUCT = b"+s"
cdef const char* NOTHING = b""


class ArrowTable:
    """A table: columns as (name, Arrow format, buffers without validity), and the row count."""

    __slots__ = ("columns", "rows")

    def __init__(self, columns: Sequence[tuple[str, str, tuple[bytes, ...]]], rows: int) -> None:
        self.columns = tuple(
            (name.encode(), form.encode(), tuple(map(bytes, buffers)))
            for name, form, buffers in columns
        )
        self.rows = int(rows)
        if any(len(buffers) >= BUFFERS_LIMIT for _, _, buffers in self.columns):
            raise ValueError("a column has at most two buffers besides validity")

    def __len__(self) -> int:
        return self.rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Returns a PyCapsule with the stream. Ignores ``requested_schema``, as Arrow allows."""
        return capsule_of((self.columns, self.rows, [False]))


cdef object capsule_of(tuple content):
    cdef ArrowArrayStream* stream = <ArrowArrayStream*>calloc(1, sizeof(ArrowArrayStream))
    if stream == NULL:
        raise MemoryError
    stream.get_schema = give_schema
    stream.get_next = give_next
    stream.get_last_error = give_error
    stream.release = release_stream
    stream.private_data = <void*>content
    Py_INCREF(content)
    return PyCapsule_New(stream, STREAM, drop_capsule)


cdef void drop_capsule(object capsule) noexcept:
    cdef ArrowArrayStream* stream
    if PyCapsule_IsValid(capsule, STREAM):
        stream = <ArrowArrayStream*>PyCapsule_GetPointer(capsule, STREAM)
        if stream.release != NULL:
            stream.release(stream)
        free(stream)


cdef void let_go(void* held) noexcept with gil:
    if held != NULL:
        Py_DECREF(<object>held)


cdef void* keep(object held) noexcept:
    Py_INCREF(held)
    return <void*>held


cdef void release_stream(ArrowArrayStream* stream) noexcept:
    let_go(stream.private_data)
    stream.private_data = NULL
    stream.release = NULL


cdef const char* give_error(ArrowArrayStream* stream) noexcept:
    return NULL


cdef int give_schema(ArrowArrayStream* stream, ArrowSchema* out) noexcept with gil:
    try:
        fill_schema(<tuple>stream.private_data, out)
        return 0
    except Exception:
        return EINVAL


cdef int give_next(ArrowArrayStream* stream, ArrowArray* out) noexcept with gil:
    cdef tuple content = <tuple>stream.private_data
    cdef list given = content[2]
    try:
        if given[0]:
            out.release = NULL
            return 0
        fill_array(content, out)
        given[0] = True
        return 0
    except Exception:
        return EINVAL


# --- schema ---

cdef int fill_schema(tuple content, ArrowSchema* out) except -1:
    cdef tuple columns = content[0]
    cdef bytes name, form
    out.format, out.name, out.metadata = STRUCT, NOTHING, NULL
    out.flags, out.n_children, out.dictionary = 0, 0, NULL
    out.release, out.private_data = release_schema, keep(content)
    out.children = <ArrowSchema**>calloc(len(columns) + 1, sizeof(ArrowSchema*))
    for name, form, _ in columns:
        add_field(out, name, form, content)
    return 0


cdef int add_field(ArrowSchema* parent, bytes name, bytes form, tuple content) except -1:
    cdef ArrowSchema* child = <ArrowSchema*>calloc(1, sizeof(ArrowSchema))
    if child == NULL or parent.children == NULL:
        free(child)
        parent.release(parent)
        raise MemoryError
    child.format, child.name = PyBytes_AS_STRING(form), PyBytes_AS_STRING(name)
    child.release, child.private_data = release_schema, keep(content)
    parent.children[parent.n_children] = child
    parent.n_children += 1
    return 0


cdef void release_schema(ArrowSchema* schema) noexcept:
    cdef int64_t i
    for i in range(schema.n_children):
        if schema.children[i].release != NULL:
            schema.children[i].release(schema.children[i])
        free(schema.children[i])
    free(schema.children)
    let_go(schema.private_data)
    schema.release = NULL


# --- array ---

cdef int fill_array(tuple content, ArrowArray* out) except -1:
    cdef tuple columns = content[0]
    cdef tuple buffers
    start_array(out, content, 1)
    out.children = <ArrowArray**>calloc(len(columns) + 1, sizeof(ArrowArray*))
    for _, _, buffers in columns:
        add_column(out, buffers, content)
    return 0


cdef int start_array(ArrowArray* out, tuple content, int64_t n_buffers) except -1:
    out.length, out.null_count, out.offset = content[1], 0, 0
    out.n_buffers, out.n_children = n_buffers, 0
    out.children, out.dictionary = NULL, NULL
    out.buffers = <const void**>calloc(BUFFERS_LIMIT, sizeof(void*))
    if out.buffers == NULL:
        raise MemoryError
    out.release, out.private_data = release_array, keep(content)
    return 0


cdef int add_column(ArrowArray* parent, tuple buffers, tuple content) except -1:
    cdef ArrowArray* child = <ArrowArray*>calloc(1, sizeof(ArrowArray))
    cdef bytes data
    cdef int64_t at = 1
    if child == NULL or parent.children == NULL:
        free(child)
        parent.release(parent)
        raise MemoryError
    start_array(child, content, len(buffers) + 1)
    for data in buffers:
        child.buffers[at] = PyBytes_AS_STRING(data)
        at += 1
    parent.children[parent.n_children] = child
    parent.n_children += 1
    return 0


cdef void release_array(ArrowArray* array) noexcept:
    cdef int64_t i
    for i in range(array.n_children):
        if array.children[i].release != NULL:
            array.children[i].release(array.children[i])
        free(array.children[i])
    free(array.children)
    free(array.buffers)
    let_go(array.private_data)
    array.release = NULL
