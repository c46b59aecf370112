"""Functions of contracts as Python callables."""

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple, final

from fastevm.evm.contracts.contract import Contract
from fastevm.evm.contracts.interface import Event, Function
from fastevm.evm.result import ExecutionResult

class Called(NamedTuple):
    """The outcome of a call: the decoded return value, the events and the `ExecutionResult`."""

    value: Any
    events: list[Event]
    result: ExecutionResult

class WithFunctions:
    """Base class of `Contract`: functions of the ABI are attributes.

    Functions are looked up first: the normal lookup would fail, which takes longer than encoding a
    call. A function is no attribute if the class or the object has an attribute of the same name.
    """

    def __getattr__(self, name: str) -> ContractFunction:
        """Returns a function. Raises AttributeError, with a suggestion, if there is none."""

    def find_functions(self) -> None:
        """Makes the functions of ``interface`` attributes."""

@final
class ContractFunction:
    """A function of a contract, or its overloads. Calling it returns the decoded value.

    Arguments are given by position, or by the names of the ABI, with or without leading
    underscores. Other keywords are ``sender``, ``value``, ``gas``, ``trace`` and further arguments
    of the ``EVM`` method. If a parameter of the contract's function has the same name, such as
    ``value``, the keyword sets this parameter, unless the parameter is given by position.

    ``abi`` is the ABI item, ``selector`` the four bytes of its selector.
    """

    __name__: str
    __qualname__: str
    __signature__: inspect.Signature
    def __init__(self, contract: Contract, overloads: list[Function]) -> None: ...
    def __call__(self, *args: Any, **terms: Any) -> Any: ...
    def call(self, *args: Any, **terms: Any) -> Called:
        """Runs ``EVM.call``. Discards changes unless ``commit`` is true."""

    def transact(self, *args: Any, **terms: Any) -> Called:
        """Runs ``EVM.transact``, which executes a whole transaction."""

    def encode(self, *args: Any, **named: Any) -> bytes:
        """Returns the call data."""

    def decode(self, output: bytes) -> Any:
        """Decodes the output of the function."""

    @property
    def abi(self) -> Mapping[str, Any]: ...
    @property
    def selector(self) -> bytes: ...
