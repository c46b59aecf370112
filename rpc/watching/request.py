"""Decodes the parameter of ``fastevm_watch``: calls, bundles, views, and the wanted changes."""

from typing import Any, Final

import msgspec
from msgspec import Struct

from fastevm.core.primitives.replace import replace
from fastevm.rpc.limits import WATCH_BUNDLE_CALLS, WATCH_DECLARATIONS, WATCH_QUESTIONS
from fastevm.rpc_types.call_object import decode_call
from fastevm.rpc_types.quantity import (
    DecodeError,
    decode_address,
    decode_bool,
    decode_uint256,
    object_fault,
)
from fastevm.simulate import CallRequest, View

PENDING: Final = "pending"
LATEST: Final = "latest"
FIELDS: Final = ("status", "output", "gas", "logs")
DEFAULT_FIELDS: Final = frozenset(("status", "output"))
MEMBERS: Final = ("calls", "bundles", "views", "block", "changes", "gasBy", "crosses", "progress")
VIEW_MEMBERS: Final = ("to", "function", "args", "from", "crosses")
QUESTION_MEMORY: Final = 1_024  # bytes of memory of a question and its answer, without its text


class Wanted(Struct, frozen=True):
    """Selects which changes are sent.

    ``fields`` are names in `FIELDS`. ``gas_by``: an answer is sent if its gas used differs from
    that of the last sent answer by at least this amount. None means 1. ``crosses`` is a threshold
    for views: a change is sent only if the value reaches the threshold from below, or falls below
    it.
    """

    fields: frozenset[str] = DEFAULT_FIELDS
    gas_by: int | None = None
    crosses: int | None = None


class Question(Struct, frozen=True):
    """A watched call, bundle of calls or view. Questions with the same text are equal."""

    content: "CallRequest | list[CallRequest] | View"
    text: bytes
    wanted: Wanted

    @property
    def is_bundle(self) -> bool:
        """Whether this is a bundle. The answer to a bundle has an outcome for each call."""
        return isinstance(self.content, list)

    @property
    def is_view(self) -> bool:
        """Whether this is a view. The answer to a view has a decoded value."""
        return isinstance(self.content, View)

    @property
    def memory(self) -> int:
        """The bytes of memory that the question uses."""
        return QUESTION_MEMORY + 2 * len(self.text)


class WatchRequest(Struct, frozen=True, eq=False):
    """The questions of a subscription in request order, and the block on which they run.

    ``tag`` is `PENDING` or `LATEST`. With ``progress``, a message is sent for each step, even
    without changes. ``shows_base_fee`` is `Dialect.free_calls_see_base_fee` of the listener.
    """

    questions: tuple[Question, ...]
    tag: str
    progress: bool
    shows_base_fee: bool

    @property
    def memory(self) -> int:
        """The bytes of memory that all questions use."""
        return sum(question.memory for question in self.questions)


def decode_watch(argument: Any, *, shows_base_fee: bool) -> WatchRequest:
    """Decodes the object of a ``fastevm_watch`` subscription. Raises DecodeError."""
    given = _object(argument, MEMBERS, "watch")
    tag = given.get("block", PENDING)
    if tag not in (PENDING, LATEST):
        raise DecodeError(f'block: expected "{PENDING}" or "{LATEST}"')
    wanted = _wanted(given)
    lists = {name: _list(given, name) for name in ("calls", "bundles", "views")}
    count = sum(map(len, lists.values()))
    if not 1 <= count <= WATCH_QUESTIONS:
        raise DecodeError(f"expected 1 to {WATCH_QUESTIONS} calls, bundles and views, got {count}")
    _check_declarations(lists["views"])
    unvalued = replace(wanted, crosses=None)  # calls and bundles have no decoded value
    progress = given.get("progress")
    return WatchRequest(
        (
            *(_question(decode_call(call), call, unvalued) for call in lists["calls"]),
            *(_bundle(bundle, unvalued) for bundle in lists["bundles"]),
            *(_view(view, wanted) for view in lists["views"]),
        ),
        tag,
        False if progress is None else decode_bool(progress, field="progress"),
        shows_base_fee,
    )


def _object(value: Any, members: tuple[str, ...], name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise object_fault(value, name)
    unknown = next((member for member in value if member not in members), None)
    if unknown is not None:
        raise DecodeError(f"{name}: unknown member {unknown[:80]!r}, expected {', '.join(members)}")
    return value


def _list(given: dict[str, Any], name: str) -> list[Any]:
    value = given.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise DecodeError(f"{name}: expected an array")
    return value


def _wanted(given: dict[str, Any]) -> Wanted:
    names = given.get("changes")
    if names is None:
        fields = DEFAULT_FIELDS
    elif isinstance(names, list) and names and all(name in FIELDS for name in names):
        fields = frozenset(names)
    else:
        raise DecodeError(f"changes: expected an array of {', '.join(FIELDS)}")
    gas_by, crosses = given.get("gasBy"), given.get("crosses")
    if gas_by is not None:
        fields |= {"gas"}
    return Wanted(
        fields,
        None if gas_by is None else decode_uint256(gas_by, field="gasBy"),
        None if crosses is None else decode_uint256(crosses, field="crosses"),
    )


def _question(content: Any, given: Any, wanted: Wanted) -> Question:
    return Question(content, msgspec.json.encode(given, order="sorted"), wanted)


def _bundle(value: Any, wanted: Wanted) -> Question:
    if not isinstance(value, list) or not 1 <= len(value) <= WATCH_BUNDLE_CALLS:
        raise DecodeError(f"bundles: expected arrays of 1 to {WATCH_BUNDLE_CALLS} calls")
    return _question([decode_call(call) for call in value], value, wanted)


def _check_declarations(views: list[Any]) -> None:
    """Limits the size of the declarations. Counts a declaration of several views once."""
    texts = [view.get("function") for view in views if isinstance(view, dict)]
    length = sum(map(len, {text for text in texts if isinstance(text, str)}))
    if length > WATCH_DECLARATIONS:
        raise DecodeError(
            f"views: the declarations have {length} characters, more than {WATCH_DECLARATIONS}"
        )


def _view(value: Any, wanted: Wanted) -> Question:
    given = _object(value, VIEW_MEMBERS, "view")
    declaration, args = given.get("function"), given.get("args")
    if not isinstance(declaration, str):
        raise DecodeError('views: expected "function", such as "get() returns (uint256)"')
    if not isinstance(args, list | None):
        raise DecodeError("views: args: expected an array")
    to = decode_address(given.get("to"), field="view.to")
    sender = given.get("from")
    if sender is not None:
        sender = decode_address(sender, field="view.from")
    try:
        view = View(to, declaration, [_argument(each) for each in args or ()], sender=sender)
    except (ValueError, TypeError) as fault:
        raise DecodeError(f"views: {str(fault)[:200]}") from None
    crosses = given.get("crosses")
    if crosses is not None:
        crosses = decode_uint256(crosses, field="view.crosses")
        wanted = replace(wanted, crosses=crosses)
    named = {name: each for name, each in given.items() if name != "crosses"}
    return _question(view, {"view": named}, wanted)


def _argument(value: Any) -> Any:
    """Convert decimal digits in an argument to numbers."""
    if isinstance(value, list):
        return [_argument(each) for each in value]
    if isinstance(value, str) and value.removeprefix("-").isdecimal() and value.isascii():
        return int(value)
    return value
