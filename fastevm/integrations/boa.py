"""Runs titanoboa 0.2.8 on fastevm: ``boa.set_env(Env())``.

Contracts, events, anchors, pranks, deals, stack traces, coverage and gas profiles are titanoboa's
own, and Python precompiles work. A function for an opcode (``boa.patch_opcode``) is called after
the message has ended: it can observe the opcode, but not replace it. Accounts and slots are cold at
the start of each message, as in a transaction.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final

from boa import Env as BoaEnv
from boa.util.abi import Address, abi_decode
from boa.util.eip1167 import extract_eip1167_address, is_eip1167_contract
from boa.vm.gas_meters import GasMeter
from boa.vm.py_evm import CONSOLE_ADDRESS
from eth._utils.address import generate_contract_address

from fastevm.evm.machine import EVM
from fastevm.integrations.boa_computation import Computation, Run, computation_of
from fastevm.integrations.boa_overrides import OwnOpcodes, registered, tell

GAS_LIMIT: Final = 100_000_000
PREIMAGE_RUNS: Final = 1024  # number of recent runs whose hashes are used to display storage
LARGEST_GAS: Final = 2**63 - 1


class Patch:
    """The block environment under titanoboa's names."""

    code_size_limit = 24_576
    names: Final = {
        "block_number": "number", "timestamp": "timestamp", "coinbase": "coinbase",
        "difficulty": "difficulty", "prev_hashes": "block_hashes", "chain_id": "chain_id",
        "gas_limit": "gas_limit", "prevrandao": "prev_randao",
    }  # fmt: skip

    def __init__(self, **values: Any) -> None:
        self.block_number, self.timestamp, self.chain_id = 1, int(time.time()), 1
        self.coinbase, self.difficulty, self.gas_limit = bytes(20), 0, GAS_LIMIT
        self.prev_hashes: list[bytes] = []
        self.prevrandao: int | bytes = 0
        for name, value in values.items():
            setattr(self, name, value)

    def terms(self) -> dict[str, Any]:
        """Returns the arguments of `EVM.set_block`."""
        found = {ours: getattr(self, name) for name, ours in self.names.items()}
        randao = found["prev_randao"]
        if isinstance(randao, bytes):
            found["prev_randao"] = int.from_bytes(randao, "big")
        return found

    @contextmanager
    def anchor(self) -> Iterator[None]:
        """Returns a context that undoes changes of the block environment on exit."""
        before = dict(self.__dict__)
        try:
            yield
        finally:
            self.__dict__.clear()
            self.__dict__.update(before)


class TouchedSlots:
    """Maps accounts to the slots that code has written. titanoboa displays only these slots."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def get(self, address: Any, default: Any = ()) -> Any:
        """Returns the slots of an account that code has written."""
        key = Address(address).canonical_address
        items = self._engine.machine.state.storage_items(key)
        placed = self._engine.placed
        return {slot for slot in items if placed.get((key, slot)) != items[slot]} or default

    def setdefault(self, address: Any, default: set[int]) -> set[int]:
        """Returns a set that is ignored. py-evm's opcodes, which environments share, write to the
        set.
        """
        return set(default)


class Engine:
    """The replacement of titanoboa's `PyEVM`."""

    def __init__(self, env: Any, fork: str) -> None:
        self.env, self.patch = env, Patch()
        self.machine = EVM(fork)
        self.machine.transient_storage = {}
        self.is_forked = False
        self._first = self.machine.state
        self._meter: type = GasMeter
        self.runs: deque[Run] = deque(maxlen=PREIMAGE_RUNS)  # recent runs that changed the state
        self.preimages: dict[bytes, bytes] = {}
        # slots that were empty and were set by the test, not by code
        self.placed: dict[tuple[bytes, int], int] = {}
        self._precompiles: dict[bytes, Any] = {}
        # Functions for opcodes look up the original opcodes in this object.
        own = SimpleNamespace(opcodes=OwnOpcodes())
        self.vm = SimpleNamespace(state=SimpleNamespace(computation_class=own))

    # --- state ---

    @property
    def is_state_dirty(self) -> bool:
        return self.machine.state is not self._first

    def get_balance(self, address: Any) -> int:
        return self.machine.balance(address.canonical_address)

    def set_balance(self, address: Any, value: int) -> None:
        self.machine.set_balance(address.canonical_address, value)

    def get_code(self, address: Any) -> bytes:
        return self.machine.code(address.canonical_address)

    def set_code(self, address: Any, code: bytes) -> None:
        self.machine.set_code(address.canonical_address, code)

    def get_storage(self, address: Any, slot: int) -> int:
        return self.machine.storage(address.canonical_address, slot)

    def set_storage(self, address: Any, slot: int, value: int) -> None:
        key = address.canonical_address
        if (key, slot) in self.placed or not self.machine.storage(key, slot):
            self.placed[key, slot] = value
        self.machine.set_storage(key, slot, value)

    def get_storage_slot(self, address: Any, slot: int) -> bytes:
        return self.get_storage(address, slot).to_bytes(32, "big")

    def get_gas_limit(self) -> int:
        return int(self.patch.gas_limit)

    def snapshot(self) -> Any:
        """Returns the (immutable) state and the transient storage."""
        return self.machine.state, dict(self.machine.transient_storage or {})

    def revert(self, snapshot: Any) -> None:
        self.machine.state, self.machine.transient_storage = snapshot[0], dict(snapshot[1])

    @contextmanager
    def written(self, state: Any, writes: list[tuple[bytes, int, int]]) -> Iterator[None]:
        """Returns a context in which the machine has ``state`` with these ``writes`` applied.

        A write is (account, slot, value).
        """
        now = self.machine.state
        self.machine.state = state
        for address, slot, value in writes:
            self.machine.set_storage(address, slot, value)
        try:
            yield
        finally:
            self.machine.state = now

    def generate_create_address(self, sender: Any) -> Any:
        key = sender.canonical_address
        nonce = self.machine.nonce(key)
        self.machine.set_nonce(key, nonce + 1)
        return Address(generate_contract_address(key, nonce))

    def reset_access_counters(self) -> None:
        """Does nothing: accesses are cold at the start of each message."""

    def enable_fast_mode(self, flag: bool = True) -> None:
        """Does nothing, because the engine has only one mode."""

    def get_gas_meter_class(self) -> type:
        return self._meter

    def set_gas_meter_class(self, cls: type) -> None:
        self._meter = cls

    def fork_rpc(self, rpc: Any, block_identifier: Any, debug: bool = False, **_: Any) -> None:
        """Continues on the state of another node. Values are fetched when they are read."""
        self.machine = EVM.fork(rpc._rpc_url, block_identifier)
        self.machine.transient_storage = {}
        self._first, self.is_forked, self._precompiles = self.machine.state, True, {}
        block = self.machine.block
        self.patch = Patch(
            block_number=block.number,
            timestamp=block.timestamp,
            chain_id=self.machine.chain_id,
            prev_hashes=list(self.machine.block_hashes),
        )

    # --- messages ---

    def deploy_code(
        self, sender: Any, origin: Any, target_address: Any, gas: int | None, gas_price: int,
        value: int, bytecode: bytes,
    ) -> Computation:  # fmt: skip
        """Runs init code at an address."""
        terms = {
            "sender": sender.canonical_address,
            "origin": origin.canonical_address,
            "address": target_address.canonical_address,
            "gas": min(self.get_gas_limit() if gas is None else gas, LARGEST_GAS),
            "gas_price": gas_price,
            "value": value,
            "commit": True,
        }
        nonce = self.machine.nonce(sender.canonical_address)
        found = self._run(lambda evm: (evm.create, (bytecode,), terms))
        # titanoboa increments the nonce when it computes the address.
        self.machine.set_nonce(sender.canonical_address, nonce)
        return found

    def execute_code(
        self, sender: Any, to: Any, gas: int, gas_price: int, value: int, bytecode: bytes,
        data: bytes, is_static: bool, fake_codesize: int | None, start_pc: int,
        ir_executor: Any, contract: Any,
    ) -> Computation:  # fmt: skip
        """Calls an account, optionally with ``bytecode`` in place of the account's code."""
        if start_pc or fake_codesize is not None:
            raise NotImplementedError("start_pc and override of the code size are not supported")
        key = to.canonical_address
        own = self.machine.code(key)
        terms = {
            "sender": sender.canonical_address,
            "gas": min(gas, LARGEST_GAS),
            "gas_price": gas_price,
            "value": value,
            "static": is_static,
            "commit": True,
        }
        if bytecode != own:
            self.machine.set_code(key, bytecode)
        try:
            found = self._run(lambda evm: (evm.call, (key, data), terms))
        finally:
            if bytecode != own:
                self.machine.set_code(key, own)
        found.msg._contract = contract
        return found

    def _run(self, make: Callable[[EVM], Any]) -> Computation:
        self.machine.set_block(**self.patch.terms())
        self._precompiles = registered(self._precompiles, self.machine)
        run = Run(self, self.machine, make)
        if self.machine.state is not run.before.state:  # otherwise the run has written no slot
            self.runs.append(run)
        root = computation_of(run, self)
        self._look_at(root)
        tell(lambda: run.steps)
        return root

    def _look_at(self, computation: Computation) -> None:
        """Handles new contracts and ``console.log``, as titanoboa's subclass of py-evm does."""
        if computation.msg.to == CONSOLE_ADDRESS:
            schema, payload = abi_decode("(string,bytes)", computation.msg.data[4:])
            print(*abi_decode(schema, payload), file=sys.stderr)
        if computation.msg.is_create and not computation.is_error:
            self._register(computation)
        for child in computation.children:
            self._look_at(child)

    def _register(self, computation: Computation) -> None:
        """Registers contracts created from blueprints, and minimal proxies."""
        address, env = computation.msg.storage_address, self.env
        maker = env._code_registry.get(computation.msg.code)
        if maker is None and is_eip1167_contract(computation.output):
            maker = env.lookup_contract(extract_eip1167_address(computation.output))
        if maker is not None and hasattr(maker, "deployer"):
            made = maker.deployer.at(Address(address))
            if hasattr(made, "created_from"):
                made.created_from = Address(computation.msg.sender)
            env.register_contract(address, made)


class Env(BoaEnv):  # type: ignore[misc, unused-ignore]
    """titanoboa's environment on fastevm. ``fork`` selects the fork, as in `EVM`."""

    def __init__(self, fork: str = "prague") -> None:
        super().__init__()
        self.nickname = "pyevm"  # tells moccasin that this is a local test chain
        self.evm = Engine(self, fork)

    @property
    def sha3_trace(self) -> dict[bytes, bytes]:
        """The preimages of the hashes of mapping keys in recent runs, by hash."""
        engine = self.evm
        while engine.runs:
            engine.preimages.update(engine.runs.popleft().preimages())
        return dict(engine.preimages)

    @sha3_trace.setter
    def sha3_trace(self, values: dict[bytes, bytes]) -> None:
        if isinstance(getattr(self, "evm", None), Engine):
            self.evm.preimages = dict(values)

    @property
    def sstore_trace(self) -> TouchedSlots:
        """The slots written by code, by account."""
        return TouchedSlots(self.evm)

    @sstore_trace.setter
    def sstore_trace(self, values: Any) -> None:
        """Does nothing: the state contains the slots."""
