"""The genesis of a development chain of the OP stack, from that of a real one.

Predeploys and preinstalled contracts are those of Ink's genesis (MIT, Optimism). L1Block and
GasPriceOracle are this package's own (``sources``): those of Ink's genesis do not know the forks
from Isthmus on, which real chains reached by upgrade transactions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import fastevm.chain.named as chains
from fastevm.chain.system_contracts import HISTORY_STORAGE, SYSTEM_CONTRACTS
from fastevm.core.execution.block.fees import FeeParameters
from fastevm.core.execution.op_stack.predeploys import L1_BLOCK, SEQUENCER_FEE_VAULT
from fastevm.core.spec.forks import ECOTONE, FJORD, ISTHMUS, JOVIAN, OP_FORKS, Fork
from fastevm.core.spec.op_stack import BASE_FEE_CHANGE_DENOMINATOR_CANYON, ELASTICITY_MULTIPLIER
from fastevm.core.spec.schedule import schedule_for

SOURCE_OF_PREDEPLOYS: Final = "ink"
OP_FORK_NAMES: Final = tuple(fork.name.casefold() for fork in OP_FORKS)
DEFAULT_OP_FORK: Final = OP_FORK_NAMES[-1]
MIN_BASE_FEE: Final = 1_000_000  # wei, from Jovian on

GAS_PRICE_ORACLE: Final = L1_BLOCK[:-1] + b"\x0f"
PROXY_ADMIN: Final = L1_BLOCK[:-1] + b"\x18"
BASE_FEE_VAULT: Final = L1_BLOCK[:-1] + b"\x19"
OPERATOR_FEE_VAULT: Final = L1_BLOCK[:-1] + b"\x1b"
# The code behind the proxy at 0x4200..00NN is at this address, ending in NN.
CODE_NAMESPACE: Final = bytes.fromhex("c0d3c0d3c0d3c0d3c0d3c0d3c0d3c0d3c0d30000")
OWN_ORACLE: Final = CODE_NAMESPACE[:-2] + b"\x01\x0f"  # calls the oracle of the genesis
# keccak256("eip1967.proxy.implementation") - 1 (ERC-1967)
IMPLEMENTATION_SLOT: Final = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc"
SLOT_0: Final = "0x" + bytes(32).hex()

Account = dict[str, Any]


def op_stack_genesis(genesis: Mapping[str, Any], fork: str = DEFAULT_OP_FORK) -> dict[str, Any]:
    """Returns ``genesis`` (geth's format) for a chain with the rules of ``fork`` from the start.

    The accounts of ``genesis`` are kept besides the predeploys. Raises ValueError if ``fork`` is
    not in OP_FORK_NAMES.
    """
    if fork not in OP_FORK_NAMES:
        raise ValueError(f"unknown fork {fork!r} of the OP stack; known are {OP_FORK_NAMES}")
    active = OP_FORKS[: OP_FORK_NAMES.index(fork) + 1]
    alloc = _without_system_contracts(genesis["alloc"])
    owner = next(iter(alloc), None)
    return {
        **genesis,
        "config": _config(genesis["config"]["chainId"], active),
        "alloc": _predeploys(active, owner) | alloc,
        "coinbase": "0x" + SEQUENCER_FEE_VAULT.hex(),
        "extraData": "0x" + _extra_data(active).hex(),
    }


def _config(chain_id: int, active: tuple[Fork, ...]) -> dict[str, Any]:
    return {
        "chainId": chain_id,
        "terminalTotalDifficulty": 0,
        "optimism": {
            "eip1559Elasticity": ELASTICITY_MULTIPLIER,
            "eip1559Denominator": BASE_FEE_CHANGE_DENOMINATOR_CANYON,
            "eip1559DenominatorCanyon": BASE_FEE_CHANGE_DENOMINATOR_CANYON,
        },
        **{fork.config_key: 0 for fork in active},
    }


def _extra_data(active: tuple[Fork, ...]) -> bytes:
    version = schedule_for(active[-1]).parameters["fee_parameters_version"]
    if not version:
        return b""
    constants = BASE_FEE_CHANGE_DENOMINATOR_CANYON, ELASTICITY_MULTIPLIER, MIN_BASE_FEE
    return FeeParameters(int(version), *constants).extra_data()


def _without_system_contracts(alloc: Mapping[str, Any]) -> dict[str, Any]:
    return {name: account for name, account in alloc.items() if name not in SYSTEM_CONTRACTS}


def _predeploys(active: tuple[Fork, ...], owner: str | None) -> dict[str, Account]:
    """Returns the contracts of the genesis by address; ``owner`` may upgrade them."""
    real = chains.find(SOURCE_OF_PREDEPLOYS).genesis()["alloc"]
    found: dict[str, Account] = {_name(bytes.fromhex(name)): real[name] for name in real}
    vault = found[_name(_code_of(BASE_FEE_VAULT))]["code"]
    for proxy, place, code in (
        (L1_BLOCK, _code_of(L1_BLOCK), _artifact("L1Block")),
        (GAS_PRICE_ORACLE, OWN_ORACLE, _artifact("GasPriceOracle")),
        (OPERATOR_FEE_VAULT, _code_of(OPERATOR_FEE_VAULT), vault),
    ):
        found[_name(place)] = {"code": code, "balance": "0x0"}
        _store(found, proxy, {IMPLEMENTATION_SLOT: "0x" + place.rjust(32, b"\0").hex()})
    flags = bytes(fork in active for fork in (JOVIAN, ISTHMUS, FJORD, ECOTONE))
    _store(found, GAS_PRICE_ORACLE, {SLOT_0: "0x" + flags.rjust(32, b"\0").hex()})
    if owner is not None:
        _store(found, PROXY_ADMIN, {SLOT_0: "0x" + owner.removeprefix("0x").rjust(64, "0")})
    if ISTHMUS in active:
        found[_name(HISTORY_STORAGE)] = SYSTEM_CONTRACTS[_name(HISTORY_STORAGE)]
    return found


def _store(alloc: dict[str, Account], address: bytes, slots: dict[str, str]) -> None:
    account = alloc[_name(address)]
    alloc[_name(address)] = {**account, "storage": {**account.get("storage", {}), **slots}}


def _code_of(proxy: bytes) -> bytes:
    return CODE_NAMESPACE[:-1] + proxy[-1:]


def _name(address: bytes) -> str:
    return "0x" + address.hex()


def _artifact(name: str) -> str:
    path = Path(__file__).parent / "artifacts" / f"{name}.json"
    found: str = json.loads(path.read_text(encoding="utf-8"))["deployedBytecode"]
    return found
