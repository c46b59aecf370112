"""Errors that name the position of a value in a payload: ``calls[5].value: expected ...``.

Only errors about values of Python programs name a position. JSON-RPC keeps go-ethereum's messages,
because clients match on them. These messages name the struct field.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from fastevm.core.primitives.located import READ_ERRORS, with_text
from fastevm.core.simulation.values import SimulatePayload
from fastevm.rpc_types.value_forms import Form

K = TypeVar("K")
T = TypeVar("T")


def located(error: Exception, path: str, name: str = "") -> Exception:
    """Returns a copy of the error whose message begins with ``path``.

    ``name``: the name of the value at ``path``. A message that begins with ``name`` is about the
    value itself; any other message is about one of its members.
    """
    text = str(error)
    own = text[len(name) :]
    if name and text.startswith(name) and own[:1] in (":", ".", "["):
        text = path + own
    else:
        text = f"{path}.{text}"
    return with_text(error, text)


def refused_call(error: Exception, payload: Any) -> Exception:
    """Returns the error of a call that was refused at execution, with the path of the call.

    ``payload``: the caller's payload. The error's attribute ``message`` stays unchanged.
    """
    position = getattr(error, "position", None)
    if position is None:
        return error
    block, call = position
    path = f"calls[{call}]"
    if isinstance(payload, SimulatePayload):
        path = f"blocks[{block}].{path}"
    elif isinstance(payload, Mapping):
        path = f"blockStateCalls[{block}].{path}"
    return with_text(error, f"{path}: {str(error).removeprefix('err: ')}")


def read_at(value: Any, read: Callable[[Any, Form], T], name: str, form: Form) -> T:
    """Reads a member. Errors name the member if the value comes from a Python program."""
    if not form.refuses_unknown:
        return read(value, form)
    try:
        return read(value, form)
    except READ_ERRORS as error:
        raise located(error, name, name) from None


def items_from(
    values: Iterable[Any], read: Callable[[Any, Form], T], name: str, form: Form
) -> tuple[T, ...]:
    """Reads each item of a list. Errors name the item if the values come from a Python program."""
    if not form.refuses_unknown:
        return tuple([read(value, form) for value in values])
    found = []
    for index, value in enumerate(values):
        try:
            found.append(read(value, form))
        except READ_ERRORS as error:
            raise located(error, f"{name}[{index}]", name) from None
    return tuple(found)


def members_from(
    values: Mapping[Any, Any],
    read_key: Callable[[Any, Form], K],
    read: Callable[[Any, Form], T],
    name: str,
    form: Form,
) -> dict[K, T]:
    """Reads keys and values of an object.

    Errors name the key if they come from a Python program.
    """
    found: dict[K, T] = {}
    for key, value in values.items():
        known = read_key(key, form)
        try:
            found[known] = read(value, form)
        except READ_ERRORS as error:
            if not form.refuses_unknown:
                raise
            shown = "0x" + known.hex() if isinstance(known, bytes) else str(known)
            raise located(error, f"{name}.{shown}", name) from None
    return found
