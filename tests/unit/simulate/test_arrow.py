"""Tests columns as an Arrow stream, read with ctypes by the C data interface."""

import ctypes as c
import gc
from array import array
from typing import Any

import pytest

from fastevm.simulate.batch.arrow import ArrowTable
from fastevm.simulate.batch.columns import Columns


class Schema(c.Structure):
    """The struct ArrowSchema of the C data interface."""


Schema._fields_ = [
    ("format", c.c_char_p), ("name", c.c_char_p), ("metadata", c.c_char_p), ("flags", c.c_int64),
    ("n_children", c.c_int64), ("children", c.POINTER(c.POINTER(Schema))),
    ("dictionary", c.c_void_p),
    ("release", c.CFUNCTYPE(None, c.POINTER(Schema))), ("private", c.c_void_p),
]  # fmt: skip


class Array(c.Structure):
    """The struct ArrowArray of the C data interface."""


Array._fields_ = [
    ("length", c.c_int64), ("null_count", c.c_int64), ("offset", c.c_int64),
    ("n_buffers", c.c_int64), ("n_children", c.c_int64), ("buffers", c.POINTER(c.c_void_p)),
    ("children", c.POINTER(c.POINTER(Array))), ("dictionary", c.c_void_p),
    ("release", c.CFUNCTYPE(None, c.POINTER(Array))), ("private", c.c_void_p),
]  # fmt: skip


class Stream(c.Structure):
    """The struct ArrowArrayStream of the C stream interface."""


Stream._fields_ = [
    ("get_schema", c.CFUNCTYPE(c.c_int, c.POINTER(Stream), c.POINTER(Schema))),
    ("get_next", c.CFUNCTYPE(c.c_int, c.POINTER(Stream), c.POINTER(Array))),
    ("get_last_error", c.CFUNCTYPE(c.c_char_p, c.POINTER(Stream))),
    ("release", c.CFUNCTYPE(None, c.POINTER(Stream))), ("private", c.c_void_p),
]  # fmt: skip

pointer_of = c.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = c.c_void_p, (c.py_object, c.c_char_p)
TABLE = [
    ("number", "l", ((1).to_bytes(8, "little") + (2).to_bytes(8, "little"),)),
    ("text", "Z", (b"".join(n.to_bytes(8, "little") for n in (0, 1, 3)), b"abc")),
]


def stream_of(capsule: Any) -> Any:
    return c.cast(pointer_of(capsule, b"arrow_array_stream"), c.POINTER(Stream))


def test_a_consumer_reads_schema_and_one_batch() -> None:
    capsule = ArrowTable(TABLE, 2).__arrow_c_stream__()
    stream, schema, batch = stream_of(capsule), Schema(), Array()
    assert stream.contents.get_schema(stream, c.byref(schema)) == 0
    assert schema.format == b"+s" and schema.n_children == 2
    fields = [schema.children[at].contents for at in range(2)]
    assert [(f.name, f.format) for f in fields] == [(b"number", b"l"), (b"text", b"Z")]
    assert stream.contents.get_next(stream, c.byref(batch)) == 0
    assert (batch.length, batch.null_count, batch.n_buffers) == (2, 0, 1)
    numbers, texts = (batch.children[at].contents for at in range(2))
    assert list(c.cast(numbers.buffers[1], c.POINTER(c.c_int64))[:2]) == [1, 2]
    assert texts.n_buffers == 3 and c.string_at(texts.buffers[2], 3) == b"abc"
    end = Array()
    assert stream.contents.get_next(stream, c.byref(end)) == 0 and not end.release
    schema.release(c.byref(schema))
    stream.contents.release(stream)
    del capsule
    gc.collect()
    assert c.string_at(texts.buffers[2], 3) == b"abc"  # the batch keeps its buffers alive
    batch.release(c.byref(batch))
    assert not batch.release and not schema.release


def test_a_stream_that_nobody_reads_is_freed() -> None:
    for _ in range(1_000):
        ArrowTable(TABLE, 2).__arrow_c_stream__()


def test_columns_have_at_most_two_buffers() -> None:
    with pytest.raises(ValueError):
        ArrowTable([("x", "l", (b"", b"", b""))], 0)
    assert len(ArrowTable([], 0)) == 0


def test_columns_of_a_batch_are_a_table() -> None:
    columns = Columns(
        first=3,
        calls=array("Q", [0, 2, 3]),
        status=array("B", [1, 2, 1]),
        gas_used=array("Q", [5, 6, 7]),
        max_used_gas=array("Q", [8, 9, 10]),
        offsets=array("Q", [0, 1, 1, 3]),
        output=b"abc",
        errors={},
        balance_bundle=array("Q", [4]),
        balance_address=b"\xa1" * 20,
        balance_change=b"\1" * 32,
        log_call=array("Q"),
        log_address=b"",
        log_topics=[],
        log_data=[],
    )
    table = columns.table()
    read = {name: buffers for name, _, buffers in table.columns}
    assert len(table) == 3 and next(iter(read)) == b"bundle"
    assert array("q", read[b"bundle"][0]).tolist() == [3, 3, 4]
    assert array("q", read[b"call"][0]).tolist() == [0, 1, 0]
    assert array("q", read[b"output"][0]).tolist() == [0, 1, 1, 3]
    assert len(columns.balances()) == 1
    assert stream_of(columns.__arrow_c_stream__()).contents.get_schema
