"""Runs lists of calls on a state in which Base's native contracts are enabled.

Use this module to compare another implementation with fastevm::

    state = NativeState("denim", timestamp=1_000)
    token = state.call(FACTORY, create_data, sender=creator).output[-20:]
    for outcome in state.run(calls):      # NativeCall objects
        print(outcome.status, outcome.gas_used, outcome.gas_refunded, outcome.output.hex())
    print(state.storage())

``python -m fastevm.testing.native_calls FILE`` runs the calls of a JSON file and prints JSON. The
object in FILE has ``fork`` ("beryl", "cobalt" or "denim"), ``calls``, and optionally ``chain_id``,
``timestamp``, ``storage`` (address -> slot -> value) and ``code`` (address -> code). Each call has
``to``, ``data``, and optionally ``sender``, ``value``, ``gas`` (decimal numbers or hex) and
``static``. Every call is a message of its own transaction: all accounts and slots are cold except
the called account. Gas is that of the frame before refunds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fastevm.core.execution.types import Log
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.evm import EVM

FACTORY = bytes.fromhex("b20f000000000000000000000000000000000000")
ACTIVATION_REGISTRY = bytes.fromhex("8453000000000000000000000000000000000001")
POLICY_REGISTRY = bytes.fromhex("8453000000000000000000000000000000000002")
ACTIVATION_ROOT = bytes.fromhex("43ee1bbe25e988521cccd8b2c8fbd38c8287ebff8e074e825a70dfd3885cce00")
FEATURES = ("base.policy_registry", "base.b20_asset", "base.b20_stablecoin")
MARKER = b"\xef"
DEFAULT_GAS = 30_000_000


class NativeCall(NamedTuple):
    """One call.

    ``to`` and ``sender``: 20 bytes; ``value`` in wei; ``gas``: the gas of the frame.
    """

    to: bytes
    data: bytes
    sender: bytes = b"\xaa" * 20
    value: int = 0
    gas: int = DEFAULT_GAS
    static: bool = False


class Outcome(NamedTuple):
    """The outcome of a call. ``status`` is "success", "revert" or the reason of a halt.

    ``gas_used`` is the gas of the frame before refunds. ``gas_refunded`` is the refund counter.
    """

    status: str
    output: bytes
    gas_used: int
    gas_refunded: int
    logs: tuple[Log, ...]


class NativeState:
    """A state with Base's features enabled, and the contracts that calls have changed.

    ``fork``: "beryl", "cobalt", "denim" or a schedule. ``timestamp`` in seconds. ``features``: the
    features to enable.
    """

    def __init__(
        self,
        fork: str | ForkSchedule,
        *,
        chain_id: int = 8453,
        timestamp: int = 1,
        features: Iterable[str] = FEATURES,
    ) -> None:
        self.evm = EVM(fork, chain_id=chain_id, timestamp=timestamp)
        self.evm.set_code(ACTIVATION_REGISTRY, MARKER)
        for feature in features:
            self.evm.set_storage(ACTIVATION_REGISTRY, feature_slot(feature), 1)

    def call(self, to: bytes, data: bytes, **options: Any) -> Outcome:
        """Runs one call. ``options`` are the other members of ``NativeCall``."""
        return self.run([NativeCall(to, data, **options)])[0]

    def run(self, calls: Iterable[NativeCall]) -> list[Outcome]:
        """Runs calls in order, each on the state after the previous one.

        Failed calls change nothing.
        """
        return [self._run(call) for call in calls]

    def _run(self, native_call: NativeCall) -> Outcome:
        if native_call.value > self.evm.balance(native_call.sender):
            self.evm.set_balance(native_call.sender, native_call.value)
        result = self.evm.call(
            native_call.to,
            native_call.data,
            sender=native_call.sender,
            value=native_call.value,
            gas=native_call.gas,
            static=native_call.static,
            commit=not native_call.static,
            access_list=[(native_call.to, ())],
        )
        status = "success" if result.error is None else result.error
        if result.error is not None and result.error.startswith("execution reverted"):
            status = "revert"
        return Outcome(status, result.output, result.gas_used, result.gas_refunded, result.logs)

    def storage(self) -> dict[bytes, dict[int, int]]:
        """Returns the nonzero slots of every account that has code, by address."""
        state = self.evm.state
        return {a: state.storage_items(a) for a in state.addresses() if state.code(a)}


def feature_slot(feature: str) -> int:
    """Returns the slot of a feature's switch in the ActivationRegistry."""
    return int.from_bytes(keccak256(keccak256(feature.encode()) + ACTIVATION_ROOT), "big")


def run_file(content: Mapping[str, Any]) -> dict[str, Any]:
    """Runs the calls of a parsed file. Returns the outcomes and the storage as JSON values."""
    options: dict[str, Any] = {
        name: _number(content[name]) for name in ("chain_id", "timestamp") if name in content
    }
    state = NativeState(content["fork"], **options)
    for address, code in content.get("code", {}).items():
        state.evm.set_code(address, code)
    for address, slots in content.get("storage", {}).items():
        for slot, value in slots.items():
            state.evm.set_storage(address, _number(slot), _number(value))
    outcomes = state.run(_read_call(item) for item in content["calls"])
    return {
        "outcomes": [_shown(outcome) for outcome in outcomes],
        "storage": {
            f"0x{address.hex()}": {f"{slot:#066x}": f"{value:#x}" for slot, value in slots.items()}
            for address, slots in state.storage().items()
        },
    }


def _read_call(members: Mapping[str, Any]) -> NativeCall:
    options: dict[str, Any] = {
        name: _number(members[name]) for name in ("value", "gas") if name in members
    }
    if "sender" in members:
        options["sender"] = _bytes(members["sender"])
    if "static" in members:
        options["static"] = bool(members["static"])
    return NativeCall(_bytes(members["to"]), _bytes(members.get("data", "0x")), **options)


def _number(value: int | str) -> int:
    return value if isinstance(value, int) else int(value, 0)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def _shown(outcome: Outcome) -> dict[str, Any]:
    return {
        "status": outcome.status,
        "output": f"0x{outcome.output.hex()}",
        "gasUsed": outcome.gas_used,
        "gasRefunded": outcome.gas_refunded,
        "logs": [
            {
                "address": f"0x{log.address.hex()}",
                "topics": [f"0x{topic.hex()}" for topic in log.topics],
                "data": f"0x{log.data.hex()}",
            }
            for log in outcome.logs
        ],
    }


if __name__ == "__main__":
    print(json.dumps(run_file(json.loads(Path(sys.argv[1]).read_text())), indent=1))
