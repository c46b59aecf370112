"""Stateful property tests of contracts: Hypothesis state machines with an `EVM` or a chain.

A test is a class with rules and invariants. Every example starts from the state after ``deploy``,
Hypothesis searches for examples that take more branches of the contracts, and a failing example is
written to a file for ``fastevm replay``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from hypothesis import note, target
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from hypothesis.stateful import RuleBasedStateMachine
from hypothesis.strategies import SearchStrategy

from fastevm.core.primitives.keccak import keccak256
from fastevm.integrations.chain_control import Chain
from fastevm.integrations.chain_recording import RecordedNode, chain_reproduction_of
from fastevm.integrations.recording import RecordedEVM
from fastevm.integrations.reproduction import Reproduction, reproduction_of

FOLDER: Final = Path("reproductions")
LABEL: Final = "branches of contracts"
FAILURE_SHOWN: Final = 2_000  # most characters of the failure in the file
# exceptions by which pytest and unittest skip a test
SKIPS: Final = frozenset({"Skipped", "SkipTest"})


def uints(bits: int = 256, *, below: int | None = None) -> SearchStrategy[int]:
    """Returns a strategy for unsigned integers: small, near a power of two, or any.

    ``bits``: the size of the Solidity type. ``below``: an exclusive upper bound.
    """
    end = 1 << bits if below is None else min(below, 1 << bits)
    if end <= 0:
        raise ValueError("there is no unsigned integer below 0")
    top = (end - 1).bit_length()
    powers = st.one_of(
        st.sampled_from(sorted({top, max(top - 1, 0), top // 2, *range(8, top, 64)})),
        st.integers(0, top),
    )
    edges = st.builds(
        lambda power, step: min(max((1 << power) + step, 0), end - 1), powers, st.integers(-2, 2)
    )
    return st.one_of(st.integers(0, min(end - 1, 100)), edges, st.integers(0, end - 1))


class ExampleMachine(RuleBasedStateMachine):
    """The common base of `EvmStateMachine` and `ChainStateMachine`."""

    reproductions: ClassVar[Path | None] = FOLDER
    """The folder of reproduction files. None writes no files."""

    def __init__(self) -> None:
        super().__init__()
        cls = type(self)
        if "_is_deployed" not in cls.__dict__:
            cls._deploy()
            cls._is_deployed = True
        self._begin()

    _is_deployed: ClassVar[bool]

    @classmethod
    def _deploy(cls) -> None:
        raise TypeError("derive from EvmStateMachine or ChainStateMachine")

    def _begin(self) -> None:
        """Restores the state after ``deploy``."""

    def _branches(self) -> int:
        """Returns the number of branches of contracts that the example has taken."""
        raise NotImplementedError

    def _reproduction(self, test: str, failure: str) -> Reproduction:
        raise NotImplementedError

    def teardown(self) -> None:
        """Reports the number of branches to Hypothesis. Writes a file if the example failed."""
        failure = failure_in_progress()
        target(float(self._branches()), label=LABEL)
        if failure is not None and self.reproductions is not None:
            cls = type(self)
            text = f"{type(failure).__name__}: {failure}"[:FAILURE_SHOWN]
            found = self._reproduction(f"{cls.__module__}.{cls.__qualname__}", text)
            path = self.reproductions / f"{cls.__name__}-{origin_of(failure)}.json"
            found.write(path)
            note(f"To replay this example: fastevm replay {path}")
            if found.warning:
                note(f"A replay may differ: {found.warning}")


def failure_in_progress() -> BaseException | None:
    """Returns the exception that ends the example, or None if it is not a test failure."""
    error = sys.exc_info()[1]
    if isinstance(error, HypothesisException) or type(error).__name__ in SKIPS:
        return None
    # The BaseException of pytest.fail is a failure; the BaseException with which Hypothesis stops
    # an example is not.
    is_failure = isinstance(error, Exception) or type(error).__module__ == "_pytest.outcomes"
    return error if is_failure else None


def origin_of(error: BaseException) -> str:
    """Returns a short digest of an exception's type and of the line that raised it.

    Hypothesis searches for the smallest example of each such origin.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    line = "" if trace is None else f"{trace.tb_frame.f_code.co_qualname}:{trace.tb_lineno}"
    return keccak256(f"{type(error).__name__} {line}".encode()).hex()[:8]


class EvmStateMachine(ExampleMachine):
    """A Hypothesis state machine with its own `EVM`, ``evm``.

    Override ``deploy``, a classmethod that runs once and stores contracts on the class. Rules call
    contracts through ``self.evm``. Keep a model in attributes that ``__init__`` or an
    ``@initialize`` rule sets. Override ``machine`` for another fork or a remote state, and call
    ``super().teardown()`` if you override ``teardown``. Changes of ``hooks`` and ``precompiles``
    are not undone after an example.
    """

    fork: ClassVar[str] = "osaka"
    evm: ClassVar[RecordedEVM]

    @classmethod
    def machine(cls) -> RecordedEVM:
        """Returns the machine before ``deploy``."""
        return RecordedEVM(cls.fork)

    @classmethod
    def deploy(cls, evm: RecordedEVM) -> None:
        """Deploys the contracts. Runs once for the class."""

    @classmethod
    def _deploy(cls) -> None:
        cls.evm = cls.machine()
        cls.deploy(cls.evm)
        cls._snapshot = cls.evm.snapshot()

    _snapshot: ClassVar[int]

    def _begin(self) -> None:
        cls = type(self)
        cls.evm.revert(cls._snapshot)
        cls._snapshot = cls.evm.snapshot()
        cls.evm.begin_recording()

    def _branches(self) -> int:
        return len(self.evm.edges)

    def _reproduction(self, test: str, failure: str) -> Reproduction:
        return reproduction_of(self.evm, test, failure)


class ChainStateMachine(ExampleMachine):
    """A Hypothesis state machine with its own development chain, ``chain``.

    ``options`` are the options of the node, see `LocalNode`. Override ``deploy``, a classmethod
    that runs once and stores contracts on the class. Requests through ``chain.node`` or a web3.py
    provider for it are recorded. The timestamp of each block is its parent's plus one second, so a
    failing example can be reproduced.
    """

    options: ClassVar[Mapping[str, Any]] = {}
    chain: ClassVar[Chain]
    _node: ClassVar[RecordedNode]
    _snapshot: ClassVar[str]
    _height: ClassVar[int]

    @classmethod
    def deploy(cls, chain: Chain) -> None:
        """Deploys the contracts. Runs once for the class."""

    @classmethod
    def _deploy(cls) -> None:
        cls._node = RecordedNode(**cls.options)
        cls.chain = Chain(cls._node)
        cls.deploy(cls.chain)
        cls._height = cls.chain.height
        cls._node.end_prelude()
        cls._snapshot = cls._node.unobserved("evm_snapshot")

    def _begin(self) -> None:
        cls = type(self)
        cls._node.unobserved("evm_revert", [cls._snapshot])
        cls._snapshot = cls._node.unobserved("evm_snapshot")
        cls._node.begin_example()

    def _branches(self) -> int:
        return self._node.branches(self._height + 1)

    def _reproduction(self, test: str, failure: str) -> Reproduction:
        return chain_reproduction_of(self._node, test, failure)
