"""Tests how a stream of bytes is split into JSON values."""

import json

import pytest

from fastevm.rpc.transport.json_stream import JsonStream, StreamFault

VALUES = (
    b'{"id":1,"method":"eth_call","params":[{"data":"0x"},"latest"]}',
    b'[{"id":1},{"id":2}]',
    rb'{"text":"a \" } ] \\"}',
    rb'{"\\\"{":"[\\\\"}',
    b"{}",
    '{"name":"é]}"}'.encode(),
    b'{\n "id": 1\n}',
)


@pytest.mark.parametrize("between", [b"", b"\n", b" \r\n\t"])
@pytest.mark.parametrize("step", [1, 2, 3, 7, 10_000])
def test_values_come_whole_however_they_arrive(between: bytes, step: int) -> None:
    stream, found = JsonStream(1_000), []
    text = between.join((b"", *VALUES, b""))
    for at in range(0, len(text), step):
        found += stream.feed(text[at : at + step])
    assert tuple(found) == VALUES
    assert all(json.loads(value) is not None for value in found)
    assert not stream.unfinished


def test_what_has_begun_is_unfinished() -> None:
    stream = JsonStream(100)
    assert list(stream.feed(b'{"a":1} {"b')) == [b'{"a":1}']
    assert stream.unfinished
    assert list(stream.feed(b'":2}\n')) == [b'{"b":2}']
    assert not stream.unfinished


@pytest.mark.parametrize("text", [b"x", b"1\n", b'"{}"', b"}", b"GET / HTTP/1.1\r\n"])
def test_what_is_no_object_or_array_is_a_fault(text: bytes) -> None:
    stream = JsonStream(100)
    found = stream.feed(b"[] " + text)
    assert next(found) == b"[]"
    with pytest.raises(StreamFault, match="not a JSON object or array"):
        next(found)


@pytest.mark.parametrize("text", [b'["' + b"a" * 200, b"[" * 101, b"[" + b" " * 99 + b"]"])
def test_a_value_has_at_most_so_many_bytes(text: bytes) -> None:
    with pytest.raises(StreamFault, match="larger than 100 bytes"):
        list(JsonStream(100).feed(text))
