"""ABIs: encodes and decodes functions, events and errors with eth-abi."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

from fastevm.core.execution.types import Log
from fastevm.core.primitives.hex import checksum_address
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.simulation.revert import revert_message

Parameter = Mapping[str, Any]

SELECTOR: Final = 4
DYNAMIC: Final = ("string", "bytes", "tuple")


def codec() -> Any:
    """Returns eth-abi's codec. Raises ImportError, which names the extra to install."""
    try:
        return import_module("eth_abi")
    except ImportError as error:
        raise ImportError("contracts need eth-abi: pip install 'fastevm[abi]'") from error


def type_of(parameter: Parameter) -> str:
    """Returns the type of a parameter in signature form; tuples as their component types."""
    kind: str = parameter["type"]
    if not kind.startswith("tuple"):
        return kind
    return f"({','.join(map(type_of, parameter['components']))}){kind[len('tuple') :]}"


def shown(parameters: Iterable[Parameter]) -> str:
    """Formats parameters in Solidity syntax."""
    return ", ".join(f"{type_of(one)} {one.get('name') or ''}".rstrip() for one in parameters)


def encode(parameters: Sequence[Parameter], values: Sequence[Any]) -> bytes:
    """Encodes arguments. Raises TypeError for a wrong number, eth-abi's error for a wrong value."""
    if len(parameters) != len(values):
        wanted = f"({shown(parameters)})"
        raise TypeError(f"{len(parameters)} arguments {wanted}, not {len(values)}")
    given = [_encodable(one, value) for one, value in zip(parameters, values, strict=True)]
    return bytes(codec().encode([type_of(one) for one in parameters], given))


def decode(parameters: Sequence[Parameter], data: bytes) -> tuple[Any, ...]:
    """Decodes data. Tuples whose components have names are named tuples."""
    values = codec().decode([type_of(one) for one in parameters], data)
    return tuple(_named(one, value) for one, value in zip(parameters, values, strict=True))


def _encodable(parameter: Parameter, value: Any) -> Any:
    """Converts a value for eth-abi: contract -> address, mapping -> tuple, hex text -> bytes."""
    kind = parameter["type"]
    if kind.endswith("]"):
        inner = {**parameter, "type": kind[: kind.rindex("[")]}
        return [_encodable(inner, one) for one in value]
    if kind == "tuple":
        parts = parameter["components"]
        if isinstance(value, Mapping):
            value = [value[one["name"]] for one in parts]
        return tuple(_encodable(one, each) for one, each in zip(parts, value, strict=True))
    if kind == "address":
        return getattr(value, "address", value)
    if kind.startswith("bytes") and isinstance(value, str):
        return bytes.fromhex(value.removeprefix("0x"))
    return value


def _named(parameter: Parameter, value: Any) -> Any:
    kind = parameter["type"]
    if kind.endswith("]"):
        inner = {**parameter, "type": kind[: kind.rindex("[")]}
        return [_named(inner, one) for one in value]
    if kind == "tuple":
        parts = parameter["components"]
        return gathered(parts, [_named(one, each) for one, each in zip(parts, value, strict=True)])
    if kind == "address":
        return checksum_address(bytes.fromhex(value[2:]))
    return value


def gathered(parameters: Sequence[Parameter], values: Sequence[Any]) -> Any:
    """Returns a tuple of values, a named tuple if all parameters have names."""
    names = [one.get("name") or "" for one in parameters]
    fits = all(name.isidentifier() and not name.startswith("_") for name in names)
    if names and fits and len(set(names)) == len(names):
        return namedtuple("Values", names, rename=True)(*values)
    return tuple(values)


class Event(NamedTuple):
    """A decoded log; ``args`` by name, or by position if a parameter has no name."""

    name: str
    args: dict[str, Any]
    address: str
    log: Log

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.args.items())
        return f"{self.name}({inside})"


class Interface:
    """The items of an ABI, by selector (functions, errors) and by topic (events)."""

    def __init__(self, abi: Iterable[Mapping[str, Any]]) -> None:
        self.functions: dict[str, list[Mapping[str, Any]]] = {}
        self.constructor: Mapping[str, Any] = {"inputs": []}
        self.events: dict[bytes, Mapping[str, Any]] = {}
        self.errors: dict[bytes, Mapping[str, Any]] = {}
        for item in abi:
            kind = item.get("type", "function")
            if kind == "function":
                self.functions.setdefault(item["name"], []).append(item)
            elif kind == "constructor":
                self.constructor = item
            elif kind == "event" and not item.get("anonymous"):
                self.events[keccak256(signature(item).encode())] = item
            elif kind == "error":
                self.errors[selector(item)] = item

    def event(self, log: Log) -> Event | None:
        """Decodes a log; None if the ABI does not have the event."""
        item = self.events.get(log.topics[0]) if log.topics else None
        if item is None:
            return None
        indexed = [one for one in item["inputs"] if one.get("indexed")]
        rest = [one for one in item["inputs"] if not one.get("indexed")]
        if len(indexed) != len(log.topics) - 1:
            return None
        topics = iter(log.topics[1:])
        found = {id(one): _topic(one, topic) for one, topic in zip(indexed, topics, strict=True)}
        for one, value in zip(rest, decode(rest, log.data), strict=True):
            found[id(one)] = value
        args = {one.get("name") or str(at): found[id(one)] for at, one in enumerate(item["inputs"])}
        return Event(item["name"], args, checksum_address(log.address), log)

    def reason(self, data: bytes) -> tuple[str | None, tuple[Any, ...], str]:
        """Decodes revert data: the custom error's name, its values, and a text."""
        item = self.errors.get(data[:SELECTOR]) if len(data) >= SELECTOR else None
        if item is None:
            return None, (), revert_message(data)
        try:
            values = decode(item["inputs"], data[SELECTOR:])
        except Exception:  # any error of eth-abi: the data has another shape
            return None, (), revert_message(data)
        pairs = zip(item["inputs"], values, strict=True)
        inside = ", ".join(
            f"{one['name']}={value!r}" if one.get("name") else repr(value) for one, value in pairs
        )
        return item["name"], values, f"{item['name']}({inside})"


def signature(item: Mapping[str, Any]) -> str:
    """Returns ``name(type,type)``, whose hash is the selector or topic."""
    return f"{item['name']}({','.join(map(type_of, item['inputs']))})"


def selector(item: Mapping[str, Any]) -> bytes:
    """Returns the four-byte selector of a function or error."""
    return keccak256(signature(item).encode())[:SELECTOR]


def _topic(parameter: Parameter, topic: bytes) -> Any:
    """Decodes an indexed value; for dynamic types this is only the hash."""
    kind = parameter["type"]
    if kind in DYNAMIC or kind.endswith("]"):
        return topic
    return decode([parameter], topic)[0]
