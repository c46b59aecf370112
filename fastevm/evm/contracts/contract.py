"""``Contract``: a deployed contract whose functions are methods."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from fastevm.core.execution.types import Log
from fastevm.core.primitives.hex import checksum_address
from fastevm.errors import FastevmError
from fastevm.evm.contracts.artifacts import Artifact, load_artifact
from fastevm.evm.contracts.interface import (
    Event,
    Interface,
    decode,
    encode,
    gathered,
    selector,
    shown,
    signature,
)
from fastevm.evm.html_table import html_table
from fastevm.evm.machine import EVM
from fastevm.evm.result import ExecutionResult

Item = Mapping[str, Any]
READS = ("view", "pure")


class ContractReverted(FastevmError):
    """Raised when a call or a deployment fails.

    ``error``: the name of a custom error of the ABI, or None; ``values``: its values; ``data``: the
    revert data; ``result``: the whole result. The text contains the reason.
    """

    def __init__(
        self, what: str, result: ExecutionResult, error: str | None, values: tuple[Any, ...],
        words: str,
    ) -> None:  # fmt: skip
        super().__init__(f"{what}: {words}")
        self.error = error
        self.values = values
        self.data = result.output
        self.result = result


class Called(NamedTuple):
    """The outcome of a call: decoded value, events and the whole result."""

    value: Any
    events: list[Event]
    result: ExecutionResult


class ContractFunction(Protocol):
    """A function of a contract. Calling it returns the decoded value: see ``Contract``.

    ``terms`` are ``sender``, ``value``, ``gas``, ``trace`` and other arguments of the ``EVM``
    method. ``abi`` is the ABI item, ``selector`` its four bytes.
    """

    abi: Item
    selector: bytes

    def __call__(self, *args: Any, **terms: Any) -> Any: ...
    def call(self, *args: Any, **terms: Any) -> Called:
        """Runs ``EVM.call``: changes are discarded unless ``commit`` is true."""

    def transact(self, *args: Any, **terms: Any) -> Called:
        """Runs ``EVM.transact``: a whole transaction."""

    def encode(self, *args: Any) -> bytes:
        """Returns the call data."""

    def decode(self, output: bytes) -> Any:
        """Decodes the output of the function."""


class Contract:
    """Contract(evm, abi, address, *, sender=None)

    A contract at ``address`` on ``evm``. ``abi``: an ABI or anything ``load_artifact`` accepts.

    Every function is a method. Calling a view or pure function is a static call; calling another
    function is a message whose changes are kept, without fees or nonce. Both return the decoded
    value and raise ``ContractReverted`` if the call fails. ``token.transfer.call(...)`` discards
    changes, ``token.transfer.transact(...)`` is a transaction; both return ``Called``. Overloads
    are selected by the number of arguments, or with ``token["transfer(address,uint256)"]``.
    ``sender`` is the default sender of calls (default: the zero address). If a function has the
    name of an attribute of this class, use ``contract["name"]``.
    """

    def __init__(
        self, evm: EVM, abi: Any, address: bytes | str | Contract, *,
        sender: bytes | str | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        artifact = load_artifact(abi, name)
        given = address.address if isinstance(address, Contract) else address
        raw = bytes.fromhex(given[2:]) if isinstance(given, str) else bytes(given)
        self.evm, self.artifact = evm, artifact
        self.contract_name, self.abi = artifact.name, artifact.abi
        self.address: str = checksum_address(raw)
        self.default_sender = sender
        self.interface = Interface(artifact.abi)
        hear = getattr(evm, "on_contract", None)  # set by subclasses that register their contracts
        if hear is not None:
            hear(self)

    def __getattr__(self, name: str) -> ContractFunction:
        if name == "interface" or name not in self.interface.functions:
            raise AttributeError(f"{type(self).__name__} has no function {name!r}")
        return _bound(self, self.interface.functions[name])

    def __getitem__(self, name: str) -> ContractFunction:
        """Returns a function by name or signature. Raises KeyError if there is none."""
        items = self.interface.functions.get(name.partition("(")[0], [])
        if "(" in name:
            items = [item for item in items if signature(item) == name.replace(" ", "")]
        if not items:
            raise KeyError(name)
        return _bound(self, items)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.interface.functions})

    def __repr__(self) -> str:
        return (
            f"<{self.contract_name} at {self.address}, {len(self.interface.functions)} functions>"
        )

    def _repr_html_(self) -> str:
        """Returns an HTML table of the functions for notebooks."""
        items = [item for found in self.interface.functions.values() for item in found]
        rows = [
            (selector(item), signature(item), item.get("stateMutability", "nonpayable"))
            for item in items
        ]
        title = f"{self.contract_name} at {self.address}"
        return html_table(title, ("selector", "function", ""), rows)

    def events_in(self, source: ExecutionResult | Called | Iterable[Log]) -> list[Event]:
        """Returns the events of this contract in a result or in logs; skips other contracts."""
        result = source.result if isinstance(source, Called) else source
        logs = result.logs if isinstance(result, ExecutionResult) else result
        own = bytes.fromhex(self.address[2:])
        found = [self.interface.event(log) for log in logs if log.address == own]
        return [event for event in found if event is not None]

    def _called(self, item: Item, result: ExecutionResult) -> Called:
        what = f"{self.contract_name}.{item['name']}"
        if not result.success:
            raise _failure(what, self.interface, result)
        return Called(_value(item, result.output), self.events_in(result), result)


class ContractType:
    """A compiled contract: ``deploy`` it, or use ``at`` if it exists. See ``fastevm.contract``."""

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.interface = Interface(artifact.abi)

    @property
    def name(self) -> str:
        """The name of the contract."""
        return self.artifact.name

    def at(
        self, evm: EVM, address: bytes | str | Contract, *, sender: bytes | str | None = None
    ) -> Contract:
        """Returns the contract at an address."""
        return Contract(evm, self.artifact, address, sender=sender)

    def initcode(self, *args: Any) -> bytes:
        """Returns the init code with constructor arguments. Raises ValueError without bytecode."""
        if not self.artifact.bytecode:
            raise ValueError(f"{self.name} has no bytecode: it is an ABI only, or abstract")
        return self.artifact.bytecode + encode(self.interface.constructor["inputs"], args)

    def deploy(
        self, evm: EVM, *args: Any, sender: bytes | str | None = None, **terms: Any
    ) -> Contract:
        """Deploys the contract with a message (``EVM.create``), without fees, and returns it.

        ``terms``: as for ``EVM.create``, such as ``value`` or the ``address`` to deploy to. Raises
        ``ContractReverted`` if the constructor fails.
        """
        if sender is not None:
            terms["sender"] = sender
        result = evm.create(self.initcode(*args), commit=True, **terms)
        if result.created_address is None:
            raise _failure(f"{self.name}.constructor", self.interface, result)
        return self.at(evm, result.created_address, sender=sender)

    def __repr__(self) -> str:
        size = len(self.artifact.bytecode or b"")
        inputs = shown(self.interface.constructor["inputs"])
        return f"<contract type {self.name}({inputs}), {size} bytes of init code>"


def contract(source: Any, *, name: str | None = None) -> ContractType:
    """Returns a contract type from an ABI or an artifact of solc, Vyper, Foundry or Hardhat.

    ``source``: values, JSON text or a path, see ``load_artifact``; ``name`` selects a contract.
    """
    return ContractType(load_artifact(source, name))


def _failure(what: str, interface: Interface, result: ExecutionResult) -> ContractReverted:
    error, values, words = None, (), str(result.error)
    if result.output and words.startswith("execution reverted"):
        error, values, words = interface.reason(result.output)
    return ContractReverted(what, result, error, values, words)


def _value(item: Item, output: bytes) -> Any:
    outputs = item.get("outputs", [])
    if not outputs:
        return None
    values = decode(outputs, output)
    return values[0] if len(values) == 1 else gathered(outputs, values)


def _fitting(items: Sequence[Item], args: Sequence[Any]) -> Item:
    """Returns the overload with this many arguments. Raises TypeError unless exactly one fits."""
    if len(items) == 1:
        return items[0]
    fits = [item for item in items if len(item["inputs"]) == len(args)]
    if len(fits) != 1:
        known = ", ".join(signature(item) for item in fits or items)
        raise TypeError(f"ambiguous overload: select one with contract[signature]: {known}")
    return fits[0]


def _bound(owner: Contract, items: Sequence[Item]) -> ContractFunction:
    """Returns a Python function, so that ``help`` and ``inspect`` show the signature."""

    def called(method: Any, args: Sequence[Any], terms: dict[str, Any]) -> Called:
        item = _fitting(items, args)
        sender = owner.default_sender
        terms = terms if sender is None else {"sender": sender, **terms}
        return owner._called(item, method(owner.address, _call_data(item, args), **terms))

    def run(*args: Any, **terms: Any) -> Any:
        reads = _fitting(items, args).get("stateMutability") in READS
        usual = {"static": True} if reads else {"commit": True}
        return called(owner.evm.call, args, {**usual, **terms}).value

    function: Any = run
    function.call = lambda *args, **terms: called(owner.evm.call, args, terms)
    function.transact = lambda *args, **terms: called(owner.evm.transact, args, terms)
    function.encode = lambda *args: _call_data(_fitting(items, args), args)
    function.decode = lambda output: _value(items[0], output)
    function.abi, function.selector = items[0], selector(items[0])
    function.__name__ = items[0]["name"]
    function.__qualname__ = f"{owner.contract_name}.{items[0]['name']}"
    function.__doc__ = "\n".join(map(_described, items))
    function.__signature__ = _signature(items[0])
    found: ContractFunction = function
    return found


def _call_data(item: Item, args: Sequence[Any]) -> bytes:
    return selector(item) + encode(item["inputs"], args)


def _described(item: Item) -> str:
    outputs = shown(item.get("outputs", []))
    returns = f" returns ({outputs})" if outputs else ""
    how = item.get("stateMutability", "nonpayable")
    return f"function {item['name']}({shown(item['inputs'])}) {how}{returns}"


def _signature(item: Item) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_ONLY
    names = [one.get("name", "").lstrip("_") for one in item["inputs"]]
    unique = len(set(names)) == len(names)
    parameters = [
        inspect.Parameter(name if unique and name.isidentifier() else f"arg{at}", kind)
        for at, name in enumerate(names)
    ]
    terms = inspect.Parameter("terms", inspect.Parameter.VAR_KEYWORD)
    return inspect.Signature([*parameters, terms])
