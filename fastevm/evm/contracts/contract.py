"""``Contract``: a deployed contract whose functions are methods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copyreg import __newobj__  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from fastevm.core.execution.types import Log
from fastevm.core.primitives.bytes_like import BytesLike, address_of, bytes_of, word_of
from fastevm.core.primitives.hex import checksum_address
from fastevm.core.simulation.values import SimulatedLog
from fastevm.errors import FastevmError
from fastevm.evm.contracts.artifacts import Artifact, load_artifact
from fastevm.evm.contracts.contract_function import Called, ContractFunction, WithFunctions
from fastevm.evm.contracts.interface import Event, Function, Interface, shown
from fastevm.evm.html_table import html_table
from fastevm.evm.machine import EVM
from fastevm.evm.result import ExecutionResult


class HasLogs(Protocol):
    """A result with logs: the outcome of one call or of many calls."""

    @property
    def logs(self) -> Iterable[Any]: ...


class HasCalls(Protocol):
    """A result with calls: the outcome of a bundle."""

    @property
    def calls(self) -> Iterable[HasLogs]: ...


Source: TypeAlias = HasLogs | HasCalls | Called | Iterable[Any]

OWN_LOGS: Final = (Log, SimulatedLog)  # log types whose values are bytes
WORD_BYTES: Final = 32


class ContractReverted(FastevmError):
    """A call or a deployment failed.

    ``error``: the name of a custom error of the ABI, or None; ``values``: the values of that error;
    ``data``: the revert data; ``result``: the whole result. The text contains the reason.
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


class NoCode(FastevmError):
    """A function with a result was called at an address without code."""

    def __init__(self, function: str, address: str) -> None:
        super().__init__(f"{function}: there is no code at {address}")
        self.function = function
        self.address = address


class Contract(WithFunctions):
    """A contract at ``address`` on ``evm``. ``abi``: an ABI or anything ``load_artifact`` accepts.

    Every function is a method. Calling a view or pure function is a static call; calling another
    function is a message whose changes are kept, without fees or nonce. Both return the decoded
    value. They raise ``ContractReverted`` if the call fails, and ``NoCode`` if the function has a
    result but the address has no code. ``token.transfer.call(...)`` discards changes,
    ``token.transfer.transact(...)`` is a transaction; ``call`` and ``transact`` return ``Called``.
    Overloads are selected by the number of arguments, or with
    ``token["transfer(address,uint256)"]``. ``sender`` is the default sender of calls (default: the
    zero address). If a function has the name of an attribute of this class, use
    ``contract["name"]``.
    """

    def __init__(
        self, evm: EVM, abi: Any, address: BytesLike | Contract, *,
        sender: BytesLike | None = None, name: str | None = None,
        root: str | Path | None = None,
    ) -> None:  # fmt: skip
        artifact = load_artifact(abi, name, root=root)
        given = address.address if isinstance(address, Contract) else address
        self.evm, self.artifact = evm, artifact
        self.contract_name, self.abi = artifact.name, artifact.abi
        self.raw_address = address_of(given)
        self.address: str = checksum_address(self.raw_address)
        self.default_sender = sender
        self.interface = Interface(artifact.abi)
        self.find_functions()
        hear = getattr(evm, "on_contract", None)  # subclasses define it to register their contracts
        if hear is not None:
            hear(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return __newobj__, (type(self),), self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.find_functions()

    def __getitem__(self, name: str) -> ContractFunction:
        """Returns a function by name or signature. Raises KeyError if there is none."""
        if not isinstance(name, str):
            raise TypeError(f"a function has a name of type str, not {type(name).__name__}")
        found = self.interface.functions.get(name.partition("(")[0], [])
        if "(" in name:
            found = [each for each in found if each.signature == name.replace(" ", "")]
        if not found:
            raise KeyError(name)
        return ContractFunction(self, found)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.interface.functions})

    def __repr__(self) -> str:
        return (
            f"<{self.contract_name} at {self.address}, {len(self.interface.functions)} functions>"
        )

    def _repr_html_(self) -> str:
        """Returns an HTML table of the functions for notebooks."""
        functions = [each for found in self.interface.functions.values() for each in found]
        rows = [(each.selector, each.signature, each.mutability) for each in functions]
        title = f"{self.contract_name} at {self.address}"
        return html_table(title, ("selector", "function", ""), rows)

    def events_in(self, source: Source) -> list[Event]:
        """Returns the events of this contract in a result or in logs.

        Skips events of other contracts.

        A result is that of a call, a transaction or a bundle, or a ``Columns``. Logs may come from
        results, receipts, simulations, web3.py or JSON-RPC: each is an object or mapping with
        ``address``, ``topics`` and ``data``.
        """
        found = [self.interface.event(log) for log in self._own_logs(source)]
        return [event for event in found if event is not None]

    def event_columns(self, name: str, source: Source) -> dict[str, list[Any]]:
        """Returns the arguments of all events with a name as columns: a list of values by argument.

        Accepts the same sources as ``events_in``, and is much faster than that method for many
        logs. Raises KeyError if the ABI does not have exactly one event with this name.
        """
        topic, event = self.interface.event_named(name)
        return event.columns(log for log in self._own_logs(source) if log.topics[:1] == (topic,))

    def _own_logs(self, source: Source) -> Iterator[Log]:
        result: Any = source.result if isinstance(source, Called) else source
        if hasattr(result, "logs"):  # a result, or columns
            logs = iter(result.logs)
        elif hasattr(result, "calls"):  # a result of a bundle
            logs = (log for call in result.calls for log in call.logs)
        else:
            logs = map(log_of, result)
        own = self.raw_address
        return (log for log in logs if log.address == own)

    def value_of(self, function: Function, result: ExecutionResult) -> Any:
        """Returns the decoded result of a function. Raises the errors of the call."""
        if not result.success:
            raise _failure(f"{self.contract_name}.{function.name}", self.interface, result)
        output = result.output
        if not output and function.outputs and not self.evm.code(self.raw_address):
            raise NoCode(f"{self.contract_name}.{function.name}", self.address)
        return function.decode(output)


def log_of(value: Any) -> Any:
    """Returns a log whose fields are bytes.

    Raises TypeError or ValueError if the value is not a log.
    """
    if type(value) in OWN_LOGS:
        return value
    try:
        if isinstance(value, Mapping):
            address, topics, data = value["address"], value["topics"], value["data"]
        else:
            address, topics, data = value.address, value.topics, value.data
    except (KeyError, AttributeError):
        text = "expected a log with address, topics and data"
        raise TypeError(f"{text}, found {type(value).__name__}") from None
    words = tuple(word_of(topic, "topic").to_bytes(WORD_BYTES) for topic in topics)
    return Log(address_of(address), words, bytes_of(data))


class ContractType:
    """A compiled contract. Call ``deploy``, or ``at`` if it is deployed.

    See ``fastevm.contract``.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.interface = Interface(artifact.abi)

    @property
    def name(self) -> str:
        """The name of the contract."""
        return self.artifact.name

    def at(
        self, evm: EVM, address: BytesLike | Contract, *, sender: BytesLike | None = None
    ) -> Contract:
        """Returns the contract at an address."""
        return Contract(evm, self.artifact, address, sender=sender)

    def initcode(self, *args: Any) -> bytes:
        """Returns the init code with constructor arguments. Raises ValueError without bytecode."""
        if not self.artifact.bytecode:
            raise ValueError(f"{self.name} has no bytecode: it is an ABI only, or abstract")
        return self.interface.constructor.encode(args, self.artifact.bytecode)

    def deploy(
        self, evm: EVM, *args: Any, sender: BytesLike | None = None, **terms: Any
    ) -> Contract:
        """Deploys the contract with a message (``EVM.create``), without fees, and returns it.

        ``terms``: arguments of ``EVM.create``, such as ``value`` or the ``address`` to deploy to.
        Raises ``ContractReverted`` if the constructor fails.
        """
        if sender is not None:
            terms["sender"] = sender
        result = evm.create(self.initcode(*args), commit=True, **terms)
        if result.created_address is None:
            raise _failure(f"{self.name}.constructor", self.interface, result)
        return self.at(evm, result.created_address, sender=sender)

    def __repr__(self) -> str:
        size = len(self.artifact.bytecode or b"")
        inputs = shown(self.interface.constructor.inputs)
        return f"<contract type {self.name}({inputs}), {size} bytes of init code>"


def contract(
    source: Any, *, name: str | None = None, root: str | Path | None = None
) -> ContractType:
    """Returns a contract type from an ABI or an artifact of solc, Vyper, Foundry or Hardhat.

    ``source`` is a Python value, JSON text or a path, see ``load_artifact``. ``name`` selects a
    contract. ``root`` is the folder with the sources of a source map.
    """
    return ContractType(load_artifact(source, name, root=root))


def _failure(what: str, interface: Interface, result: ExecutionResult) -> ContractReverted:
    error, values, words = None, (), str(result.error)
    if result.output and words.startswith("execution reverted"):
        error, values, words = interface.reason(result.output)
    return ContractReverted(what, result, error, values, words)
