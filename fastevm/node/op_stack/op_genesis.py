"""The genesis of a development chain of the OP Stack or of Base, made from a real chain's genesis.

Predeploys and preinstalled contracts are those of Ink's genesis (MIT, Optimism). L1Block and
GasPriceOracle come from this package (``sources``), because the contracts of Ink's genesis do not
know the forks from Isthmus on. Real chains got newer versions of these two contracts in upgrade
transactions. On a chain of Base every feature of the native tokens is active; the owner of the
predeploys may change that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import fastevm.chain.named as chains
from fastevm.chain.system_contracts import HISTORY_STORAGE, SYSTEM_CONTRACTS
from fastevm.core.execution.block.fees import FeeParameters
from fastevm.core.execution.op_stack.base_time import BLOCK_MILLIS, SECOND_MILLIS
from fastevm.core.execution.op_stack.predeploys import L1_BLOCK, SEQUENCER_FEE_VAULT
from fastevm.core.spec.forks import (
    BASE_FORKS,
    ECOTONE,
    FJORD,
    ISTHMUS,
    JOVIAN,
    OP_FORKS,
    Fork,
)
from fastevm.core.spec.op_stack import BASE_FEE_CHANGE_DENOMINATOR_CANYON, ELASTICITY_MULTIPLIER
from fastevm.core.spec.schedule import schedule_for

SOURCE_OF_PREDEPLOYS: Final = "ink"
OP_FORK_NAMES: Final = tuple(fork.name.casefold() for fork in OP_FORKS)
DEFAULT_OP_FORK: Final = OP_FORK_NAMES[-1]
BASE_FORK_NAMES: Final = tuple(fork.name.casefold() for fork in BASE_FORKS)
DEFAULT_BASE_FORK: Final = BASE_FORK_NAMES[-1]
MIN_BASE_FEE: Final = 1_000_000  # wei, from Jovian on

GAS_PRICE_ORACLE: Final = L1_BLOCK[:-1] + b"\x0f"
PROXY_ADMIN: Final = L1_BLOCK[:-1] + b"\x18"
BASE_FEE_VAULT: Final = L1_BLOCK[:-1] + b"\x19"
OPERATOR_FEE_VAULT: Final = L1_BLOCK[:-1] + b"\x1b"
# The code behind the proxy at 0x4200..00NN is at this address, ending in NN.
CODE_NAMESPACE: Final = bytes.fromhex("c0d3c0d3c0d3c0d3c0d3c0d3c0d3c0d3c0d30000")
# The oracle forwards all calls that it does not implement to the contract of Ink's genesis.
OWN_ORACLE: Final = CODE_NAMESPACE[:-2] + b"\x01\x0f"
# keccak256("eip1967.proxy.implementation") - 1 (ERC-1967)
IMPLEMENTATION_SLOT: Final = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc"
SLOT_0: Final = "0x" + bytes(32).hex()

BASE_GAS_LIMIT: Final = 400_000_000  # gas limit of a block of 2 s
BASE_BLOCK_SECONDS: Final = 2
ACTIVATION_REGISTRY: Final = bytes.fromhex("8453000000000000000000000000000000000001")
NATIVE_CODE: Final = "0xef"
TRUE: Final = "0x" + (1).to_bytes(32, "big").hex()
# Slots of the ActivationRegistry: whether policies, assets and stablecoins are active.
FEATURE_SLOTS: Final = (
    "0x8c5327ddcca092db72284503162323c6e8d392394b1d5c71991227bbc26f7c07",
    "0x819420403a306232adb8ee78d9f35b5090371155b34376cf9b020e30029278e5",
    "0xca7c276524c5aeaac4d56c8a3d36eb5f9a64f60841fb65b539c99c21ca7df109",
)

Account = dict[str, Any]


def op_stack_genesis(genesis: Mapping[str, Any], fork: str = DEFAULT_OP_FORK) -> dict[str, Any]:
    """Returns ``genesis`` (geth's format) for a chain with the rules of ``fork`` from the start.

    The result has the accounts of ``genesis`` and the predeploys; the first account owns the
    predeploys. Raises ValueError if ``fork`` is in neither OP_FORK_NAMES nor BASE_FORK_NAMES.
    """
    active = active_forks(fork)
    alloc = _without_system_contracts(genesis["alloc"])
    owner = next(iter(alloc), None)
    return {
        **genesis,
        "config": _config(genesis["config"]["chainId"], active, owner),
        "alloc": _predeploys(active, owner) | alloc,
        "coinbase": "0x" + SEQUENCER_FEE_VAULT.hex(),
        "extraData": "0x" + _extra_data(active).hex(),
    }


def active_forks(fork: str) -> tuple[Fork, ...]:
    """Returns the forks of a chain up to ``fork``. Raises ValueError for an unknown name."""
    if fork in BASE_FORK_NAMES:
        common = OP_FORKS[: OP_FORKS.index(JOVIAN) + 1]
        return common + BASE_FORKS[: BASE_FORK_NAMES.index(fork) + 1]
    if fork not in OP_FORK_NAMES:
        known = OP_FORK_NAMES + BASE_FORK_NAMES
        raise ValueError(f"unknown fork {fork!r} of the OP stack; known are {known}")
    return OP_FORKS[: OP_FORK_NAMES.index(fork) + 1]


def block_millis(fork: str) -> int | None:
    """Returns the block time in milliseconds that ``fork`` requires, or None."""
    return BLOCK_MILLIS if _rules(active_forks(fork))["has_base_time"] else None


def base_gas_limit(fork: str) -> int:
    """Returns the gas limit of Base's blocks, which is proportional to the block time."""
    millis = block_millis(fork) or BASE_BLOCK_SECONDS * SECOND_MILLIS
    return BASE_GAS_LIMIT * millis // (BASE_BLOCK_SECONDS * SECOND_MILLIS)


def _rules(active: tuple[Fork, ...]) -> Mapping[str, Any]:
    return schedule_for(active[-1]).parameters


def _config(chain_id: int, active: tuple[Fork, ...], owner: str | None) -> dict[str, Any]:
    has_admin = owner is not None and _rules(active)["b20_version"]
    return {
        "chainId": chain_id,
        "terminalTotalDifficulty": 0,
        "optimism": {
            "eip1559Elasticity": ELASTICITY_MULTIPLIER,
            "eip1559Denominator": BASE_FEE_CHANGE_DENOMINATOR_CANYON,
            "eip1559DenominatorCanyon": BASE_FEE_CHANGE_DENOMINATOR_CANYON,
        },
        **{fork.config_key: 0 for fork in active},
        **({"activationAdminAddress": owner} if has_admin else {}),
    }


def _extra_data(active: tuple[Fork, ...]) -> bytes:
    rules = _rules(active)
    version = rules["fee_parameters_version"]
    if not version:
        return b""
    # The base fee must change by the same factor per second, whatever the block time is.
    slower = BASE_BLOCK_SECONDS * SECOND_MILLIS // BLOCK_MILLIS if rules["has_base_time"] else 1
    denominator = BASE_FEE_CHANGE_DENOMINATOR_CANYON * slower
    constants = denominator, ELASTICITY_MULTIPLIER, MIN_BASE_FEE
    return FeeParameters(int(version), *constants).extra_data()


def _without_system_contracts(alloc: Mapping[str, Any]) -> dict[str, Any]:
    return {name: account for name, account in alloc.items() if name not in SYSTEM_CONTRACTS}


def _predeploys(active: tuple[Fork, ...], owner: str | None) -> dict[str, Account]:
    """Returns the predeployed contracts by address. ``owner`` may upgrade them."""
    real = chains.find(SOURCE_OF_PREDEPLOYS).genesis()["alloc"]
    found: dict[str, Account] = {_name(bytes.fromhex(name)): real[name] for name in real}
    vault = found[_name(_code_of(BASE_FEE_VAULT))]["code"]
    for proxy, implementation, code in (
        (L1_BLOCK, _code_of(L1_BLOCK), _artifact("L1Block")),
        (GAS_PRICE_ORACLE, OWN_ORACLE, _artifact("GasPriceOracle")),
        (OPERATOR_FEE_VAULT, _code_of(OPERATOR_FEE_VAULT), vault),
    ):
        found[_name(implementation)] = {"code": code, "balance": "0x0"}
        _store(found, proxy, {IMPLEMENTATION_SLOT: "0x" + implementation.rjust(32, b"\0").hex()})
    flags = bytes(fork in active for fork in (JOVIAN, ISTHMUS, FJORD, ECOTONE))
    _store(found, GAS_PRICE_ORACLE, {SLOT_0: "0x" + flags.rjust(32, b"\0").hex()})
    if owner is not None:
        _store(found, PROXY_ADMIN, {SLOT_0: "0x" + owner.removeprefix("0x").rjust(64, "0")})
    if ISTHMUS in active:
        found[_name(HISTORY_STORAGE)] = SYSTEM_CONTRACTS[_name(HISTORY_STORAGE)]
    if _rules(active)["b20_version"]:
        flags_on = dict.fromkeys(FEATURE_SLOTS, TRUE)
        registry = {"code": NATIVE_CODE, "balance": "0x0", "storage": flags_on}
        found[_name(ACTIVATION_REGISTRY)] = registry
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
