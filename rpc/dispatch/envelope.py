"""Parses bodies into calls and encodes answers (JSON-RPC 2.0).

A body of well-formed requests is decoded in one step. Otherwise each member is extracted as raw
JSON and checked, so that a malformed request still gets an answer with its id. The id is echoed
byte for byte.
"""

import re
from typing import Any, Final

import msgspec

from fastevm.rpc.dispatch.long_answer import PIECE, Answer, LongAnswer
from fastevm.rpc.errors import RpcError
from fastevm.rpc.limits import METHOD_NAME_LIMIT, VALUES_LIMIT
from fastevm.rpc_client.large_json import decode, is_too_deep
from fastevm.rpc_types.text.json_size import measure

NULL: Final = b"null"
BLANKS: Final = b" \t\r\n"
VERSION: Final = "2.0"

_HEAD: Final = b'{"jsonrpc":"2.0","id":'
_RESULT: Final = b',"result":'

_encoder: Final = msgspec.json.Encoder()


class _Members(msgspec.Struct, gc=False):
    """Members of a request object as raw JSON, empty if absent. Unknown members are ignored."""

    jsonrpc: msgspec.Raw = msgspec.Raw()
    method: msgspec.Raw = msgspec.Raw()
    params: msgspec.Raw = msgspec.Raw()
    id: msgspec.Raw = msgspec.Raw()


class _Request(msgspec.Struct, gc=False):
    """A well-formed request with decoded params."""

    jsonrpc: str
    method: str
    params: list[Any] | None = None
    id: msgspec.Raw = msgspec.Raw()


class _TextRequest(msgspec.Struct, gc=False):
    """A well-formed request. Its params stay JSON text, for methods that read the text."""

    jsonrpc: str
    method: str
    params: msgspec.Raw = msgspec.Raw()
    id: msgspec.Raw = msgspec.Raw()


_text_requests: Final = msgspec.json.Decoder(_TextRequest | list[_TextRequest])
_requests: Final = msgspec.json.Decoder(_Request | list[_Request])
_members: Final = msgspec.json.Decoder(_Members)
_items: Final = msgspec.json.Decoder(list[msgspec.Raw])
_anything: Final = msgspec.json.Decoder()

# Params of larger bodies are decoded by the thread that runs the call, and so are params of methods
# that read JSON text.
EAGER_SIZE: Final = 65_536  # bytes
READ_TEXT: Final = (b'"eth_call"', b'"eth_simulateV1"')

# ids that need no parsing: integers, and strings without escapes
ZERO: Final = ord("0")
_LITERAL_ID: Final = re.compile(rb'(?:0|-?[1-9][0-9]*|"[0-9A-Za-z_.:-]*")')

# RecursionError: JSON nested deeper than the parser's stack. ValueError: the base of the errors of
# msgspec, of the reader in pieces, and of UTF-8.
_UNREADABLE: Final = (ValueError, RecursionError)


class Call(msgspec.Struct, gc=False):
    """A request that can be dispatched.

    ``id`` is raw JSON, None for a notification. ``params`` are decoded, or raw JSON for
    `parse_params`. If ``is_long`` is true, the call runs as a long job, whatever its method (see
    `workers`).
    """

    id: bytes | None
    method: str
    params: list[Any] | bytes
    is_long: bool = False


class Refusal(msgspec.Struct, gc=False):
    """A malformed request and its error."""

    id: bytes
    error: RpcError


Message = Call | Refusal


def parse_body(body: bytes, batch_items: int) -> Message | list[Message]:
    """Parse a body into one message, or into the list of a batch of at most ``batch_items``.

    Returns one refusal, without parsing, if the batch is larger, the body has more than
    `VALUES_LIMIT` values, or `is_too_deep` is true.
    """
    if is_too_deep(body):
        return Refusal(NULL, RpcError("parse_error"))
    if len(body) > 2 * batch_items:  # a shorter body cannot contain more items
        refusal = _too_large(body, batch_items)
        if refusal is not None:
            return refusal
    if len(body) <= EAGER_SIZE and body.isascii():
        reads_text = READ_TEXT[0] in body or READ_TEXT[1] in body
        found: Any
        try:
            found = (_text_requests if reads_text else _requests).decode(body)
        except _UNREADABLE:
            return _parse_carefully(body)
        if not isinstance(found, list):
            calls = _well_formed_calls([found])
            return calls[0] if calls else _parse_message(body)
        calls = _well_formed_calls(found)
        if calls:
            return calls
    return _parse_carefully(body)


def parse_params(raw: list[Any] | bytes) -> list[Any]:
    """Decode the params of a call; an empty list if they are missing or null."""
    if isinstance(raw, list):
        return raw
    if not raw or raw == NULL:
        return []
    try:
        params = decode(raw, _anything.decode, strict=True)
    except _UNREADABLE:
        raise RpcError("parse_error") from None
    if not isinstance(params, list):
        raise RpcError("non_array_args")
    return params


def encode(value: Any) -> bytes:
    """Return a JSON value as bytes."""
    return _encoder.encode(value)


def head_of(call_id: bytes) -> bytes:
    """Return the beginning of an answer, up to its result. A closing brace follows the result."""
    return b"".join((_HEAD, call_id, _RESULT))


def encode_result(call_id: bytes, result: Any) -> Answer:
    """Return the answer with ``result``, which is a JSON value or JSON text as bytes.

    Large results become a LongAnswer, which does not copy the text.
    """
    if type(result) is LongAnswer:
        return result.answering(call_id, head_of(call_id), b"}")
    if type(result) is not bytes:
        result = _encoder.encode(result)
    if len(result) > PIECE:
        return LongAnswer((head_of(call_id), result, b"}"), call_id)
    return b"".join((_HEAD, call_id, _RESULT, result, b"}"))


def encode_error(call_id: bytes, error: dict[str, Any]) -> bytes:
    """Return the answer with an ``error`` object."""
    try:
        encoded = _encoder.encode(error)
    except UnicodeEncodeError:  # an escape in the request encoded a lone surrogate
        message = str(error["message"]).encode("utf-8", "replace").decode()
        encoded = _encoder.encode({**error, "message": message})
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (call_id, encoded)


def encode_batch(answers: list[bytes]) -> bytes:
    """Return ``answers`` as a JSON array."""
    return b"[" + b",".join(answers) + b"]"


def _well_formed_calls(requests: list[_Request] | list[_TextRequest]) -> list[Message]:
    """Return the calls of requests.

    Returns an empty list if any of the requests must be checked member by member.
    """
    calls: list[Message] = []
    for request in requests:
        name, call_id = request.method, bytes(request.id)
        if not name or len(name) > METHOD_NAME_LIMIT or request.jsonrpc != VERSION:
            return []
        is_number = call_id.isdigit() and call_id[0] != ZERO
        if call_id and not is_number and not _LITERAL_ID.fullmatch(call_id):
            return []
        params = request.params
        read = bytes(params).strip() if isinstance(params, msgspec.Raw) else params or []
        calls.append(Call(call_id or None, name, read))
    return calls


def _too_large(body: bytes, batch_items: int) -> Message | list[Message] | None:
    is_batch = body.lstrip(BLANKS)[:1] == b"["
    if not is_batch and len(body) <= VALUES_LIMIT:
        return None
    items, values, first_end = measure(body, items=batch_items, values=VALUES_LIMIT)
    if items > batch_items:
        first = _parse_message(body[body.index(b"[") + 1 : first_end])
        return [Refusal(first.id or NULL, RpcError("batch_too_large"))]
    if values > VALUES_LIMIT:
        return Refusal(NULL, RpcError("too_many_values", limit=VALUES_LIMIT))
    return None


def _parse_carefully(body: bytes) -> Message | list[Message]:
    if not _is_utf8(body):
        return Refusal(NULL, RpcError("parse_error"))
    if body.lstrip(BLANKS)[:1] != b"[":
        return _parse_message(body)
    try:
        items = _items.decode(body)
    except _UNREADABLE:
        return Refusal(NULL, RpcError("parse_error"))
    if not items:
        return Refusal(NULL, RpcError("empty_batch"))
    return [_parse_message(bytes(item)) for item in items]


def _parse_message(raw: bytes) -> Message:
    try:
        members = _members.decode(raw)
    except msgspec.ValidationError:  # valid JSON, but no request object
        return Refusal(NULL, RpcError("invalid_request"))
    except _UNREADABLE:
        return Refusal(NULL, RpcError("parse_error"))
    call_id = bytes(members.id).strip() if members.id else None
    echoed = call_id if call_id is not None and _is_scalar(call_id) else NULL
    if call_id is not None and not _is_scalar(call_id):
        return Refusal(NULL, RpcError("invalid_request"))
    name = _text(bytes(members.method))
    if not name or _text(bytes(members.jsonrpc)) != VERSION:
        return Refusal(echoed, RpcError("invalid_request"))
    if len(name) > METHOD_NAME_LIMIT:
        too_long = RpcError("method_name_too_long", length=len(name), limit=METHOD_NAME_LIMIT)
        return Refusal(echoed, too_long)
    return Call(call_id, name, bytes(members.params).strip())


def _is_utf8(body: bytes) -> bool:
    """Return whether a body is UTF-8. The JSON parser does not check the members that it skips."""
    if body.isascii():
        return True
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_scalar(raw: bytes) -> bool:
    """Return whether raw JSON is a valid id: number, string, true, false or null."""
    if raw[:1] in (b"{", b"["):
        return False
    try:
        _anything.decode(raw)
    except _UNREADABLE:
        return False
    return True


def _text(raw: bytes) -> str | None:
    try:
        value = _anything.decode(raw) if raw else None
    except _UNREADABLE:
        return None
    return value if isinstance(value, str) else None
