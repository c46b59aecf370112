"""ABIs: functions, events and errors. Their types are compiled at first use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from fastevm.core.execution.types import Log
from fastevm.core.primitives.hex import checksum_address
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.primitives.suggestion import did_you_mean
from fastevm.core.simulation.revert import revert_message
from fastevm.evm.contracts.codec import (
    DEPTH_LIMIT,
    AbiDecodingError,
    AbiEncodingError,
    AbiType,
    decode_column,
    decode_values,
    encode_values,
)
from fastevm.evm.contracts.values import Values, class_for

Parameter = Mapping[str, Any]

SELECTOR: Final = 4
DYNAMIC: Final = ("string", "bytes", "tuple")
READS: Final = ("view", "pure")
NAMED: Final = ("function", "event", "error")


def compiled(parameter: Parameter) -> AbiType:
    """Returns the type of a parameter."""
    text: str = parameter["type"]
    if not text.startswith("tuple"):
        return AbiType(text)
    parts = parameter["components"]
    members = [(part.get("name") or "", compiled(part)) for part in parts]
    # The prefix "tuple" stays: arrays of tuples compile their item with the same members.
    return AbiType(text, members, class_for([name for name, _ in members]))


def compiled_tuple(parameters: Sequence[Parameter]) -> AbiType:
    """Returns the type of several parameters as a tuple. Decoded values have no names."""
    return AbiType(
        "tuple", [(parameter.get("name") or "", compiled(parameter)) for parameter in parameters]
    )


def shown(parameters: Iterable[Parameter]) -> str:
    """Formats parameters in Solidity syntax."""
    return ", ".join(
        f"{compiled(parameter).name} {parameter.get('name') or ''}".rstrip()
        for parameter in parameters
    )


class Function:
    """A function, constructor or error of an ABI: the item, its types and its selector."""

    def __init__(self, item: Mapping[str, Any]) -> None:
        self.item = item
        self.name: str = item.get("name", "constructor")
        self.inputs: Sequence[Parameter] = item.get("inputs", ())
        self.outputs: Sequence[Parameter] = item.get("outputs", ())
        self.mutability: str = item.get("stateMutability", "nonpayable")
        self.reads = self.mutability in READS or bool(item.get("constant"))
        self.names = [(item.get("name") or "") for item in self.inputs]

    @cached_property
    def input_type(self) -> AbiType:
        """The types of the arguments, as a tuple."""
        return compiled_tuple(self.inputs)

    @cached_property
    def output_type(self) -> AbiType:
        """The types of the results, as a tuple."""
        return compiled_tuple(self.outputs)

    @cached_property
    def output_class(self) -> type[Values] | None:
        """The class of named results, if there are several."""
        return class_for([output.get("name") or "" for output in self.outputs])

    @cached_property
    def signature(self) -> str:
        """The signature ``name(type,type)``. The selector or topic is a part of its hash."""
        return self.name + self.input_type.name

    @cached_property
    def selector(self) -> bytes:
        """The first four bytes of the signature's hash."""
        return keccak256(self.signature.encode())[:SELECTOR]

    def encode(self, args: Sequence[Any], prefix: bytes | None = None) -> bytes:
        """Returns the call data: the selector, or ``prefix`` if given, and the encoded arguments.

        Raises TypeError or ValueError with the name of the argument.
        """
        if len(args) != len(self.inputs):
            wanted = f"({shown(self.inputs)})"
            raise TypeError(f"{self.name}: {len(self.inputs)} arguments {wanted}, not {len(args)}")
        before = self.selector if prefix is None else prefix
        if not args:
            return before
        try:
            return encode_values(self.input_type, args, before)
        except AbiEncodingError as error:
            raise AbiEncodingError(f"{self.name}: {error}") from None

    def decode(self, output: bytes) -> Any:
        """Returns the result: None without outputs, one value, or a tuple of values."""
        if not self.outputs:
            return None
        try:
            values = decode_values(self.output_type, output)
        except AbiDecodingError as error:
            raise AbiDecodingError(f"{self.name}: {error}") from None
        if len(values) == 1:
            return values[0]
        return values if self.output_class is None else self.output_class(values)

    def decode_inputs(self, data: bytes) -> tuple[Any, ...]:
        """Decodes the arguments of a call. ``data``: the call data without the selector."""
        return decode_values(self.input_type, data)

    def described(self) -> str:
        """Returns the function in Solidity syntax."""
        outputs = f" returns ({shown(self.outputs)})" if self.outputs else ""
        return f"function {self.name}({shown(self.inputs)}) {self.mutability}{outputs}"


class Event(NamedTuple):
    """A decoded log. ``args``: the arguments by position, name and attribute."""

    name: str
    args: Values
    address: str
    log: Log

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.args._asdict().items())
        return f"{self.name}({inside})"


class EventType:
    """An event of an ABI: the types of the arguments, and which argument is in which topic."""

    def __init__(self, item: Mapping[str, Any]) -> None:
        self.item = item
        self.name: str = item["name"]
        inputs = item.get("inputs", ())
        self.indexed = [at for at, item in enumerate(inputs) if item.get("indexed")]
        self.rest = [at for at, item in enumerate(inputs) if not item.get("indexed")]
        # If an indexed value has a dynamic type, the log contains only its hash.
        self.topic_types = [
            AbiType("bytes32") if is_hashed(inputs[at]) else compiled(inputs[at])
            for at in self.indexed
        ]
        self.data_type = compiled_tuple([inputs[at] for at in self.rest])
        names = [item.get("name") or str(at) for at, item in enumerate(inputs)]
        self.names = names
        self.make = class_for(names) or Values
        self.is_flat = not self.data_type.is_dynamic

    def decode(self, log: Log) -> Event | None:
        """Returns the event, or None if the log has another number of topics."""
        if len(self.indexed) != len(log.topics) - 1:
            return None
        found: list[Any] = [None] * len(self.names)
        for at, kind, topic in zip(self.indexed, self.topic_types, log.topics[1:], strict=True):
            (found[at],) = decode_column(kind, (topic,))
        for at, value in zip(self.rest, decode_values(self.data_type, log.data), strict=True):
            found[at] = value
        return Event(self.name, self.make(found), checksum_address(log.address), log)

    def columns(self, logs: Iterable[Log]) -> dict[str, list[Any]]:
        """Returns the arguments of many logs by name, as lists of the same length."""
        chosen = [log for log in logs if len(log.topics) == len(self.indexed) + 1]
        found: dict[str, list[Any]] = {name: [] for name in self.names}
        for number, (at, kind) in enumerate(zip(self.indexed, self.topic_types, strict=True), 1):
            found[self.names[at]] = decode_column(kind, [log.topics[number] for log in chosen])
        rows = [decode_values(self.data_type, log.data) for log in chosen]
        for column, at in enumerate(self.rest):
            found[self.names[at]] = [row[column] for row in rows]
        return found


def is_hashed(parameter: Parameter) -> bool:
    """Returns whether a log contains only the hash of this indexed parameter."""
    kind: str = parameter["type"]
    return kind in DYNAMIC or kind.endswith("]")


def check_item(item: Any, path: str) -> None:
    """Raises TypeError or ValueError if a value is not an item of an ABI.

    The error has the path of the fault. The types of parameters are checked when they are compiled.
    """
    if not isinstance(item, Mapping):
        raise TypeError(f"{path}: expected an object, found {type(item).__name__}")
    if item.get("type", "function") in NAMED and not isinstance(item.get("name"), str):
        raise ValueError(f"{path}: there is no name")
    for member in ("inputs", "outputs"):
        check_parameters(item.get(member) or (), f"{path}.{member}")


def check_parameters(parameters: Any, path: str, level: int = 0) -> None:
    """Works like `check_item`, for the parameters of an item and the components of a tuple."""
    if level > DEPTH_LIMIT:
        raise ValueError(f"{path[:80]}...: more than {DEPTH_LIMIT} levels of tuples")
    if not isinstance(parameters, Sequence) or isinstance(parameters, str | bytes):
        raise TypeError(f"{path}: expected an array, found {type(parameters).__name__}")
    for index, parameter in enumerate(parameters):
        if not isinstance(parameter, Mapping):
            kind = type(parameter).__name__
            raise TypeError(f"{path}[{index}]: expected an object, found {kind}")
        if not isinstance(parameter.get("type"), str):
            raise ValueError(f"{path}[{index}]: there is no type")
        check_parameters(
            parameter.get("components") or (), f"{path}[{index}].components", level + 1
        )


class Interface:
    """The items of an ABI, by selector (functions, errors) and by topic (events)."""

    def __init__(self, abi: Iterable[Mapping[str, Any]]) -> None:
        self.abi = list(abi)
        self.functions: dict[str, list[Function]] = {}
        self.constructor = Function({"inputs": []})
        self.events: dict[bytes, EventType] = {}
        self.errors: dict[bytes, Function] = {}
        for index, item in enumerate(self.abi):
            check_item(item, f"abi[{index}]")
            kind = item.get("type", "function")
            if kind == "function":
                self.functions.setdefault(item["name"], []).append(Function(item))
            elif kind == "constructor":
                self.constructor = Function(item)
            elif kind == "event" and not item.get("anonymous"):
                topic = keccak256(Function(item).signature.encode())
                self.events[topic] = EventType(item)
            elif kind == "error":
                error = Function(item)
                self.errors[error.selector] = error

    def __reduce__(self) -> tuple[Any, ...]:
        return Interface, (self.abi,)  # compiled types are not pickled but compiled again

    def event(self, log: Log) -> Event | None:
        """Decodes a log. Returns None if the ABI does not have the event."""
        found = self.events.get(log.topics[0]) if log.topics else None
        return None if found is None else found.decode(log)

    def event_named(self, name: str) -> tuple[bytes, EventType]:
        """Returns the topic and the event with a name.

        Raises KeyError unless the ABI has exactly one.
        """
        found = [(topic, each) for topic, each in self.events.items() if each.name == name]
        if len(found) != 1:
            hint = "" if found else did_you_mean(name, [e.name for e in self.events.values()])
            raise KeyError(f"{len(found)} events of the ABI have the name {name!r}{hint}")
        return found[0]

    def reason(self, data: bytes) -> tuple[str | None, tuple[Any, ...], str]:
        """Decodes revert data. Returns the custom error's name, its values, and a text."""
        error = self.errors.get(data[:SELECTOR]) if len(data) >= SELECTOR else None
        if error is None:
            return None, (), revert_message(data)
        try:
            values = decode_values(error.input_type, data, SELECTOR)
        except AbiDecodingError:  # the data does not match the error's types
            return None, (), revert_message(data)
        pairs = zip(error.names, values, strict=True)
        inside = ", ".join(f"{name}={value!r}" if name else repr(value) for name, value in pairs)
        return error.name, values, f"{error.name}({inside})"
