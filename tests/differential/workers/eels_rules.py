"""Prints constants of the executable specification's forks as one line of JSON.

Standard input: {"forks": [module names], "constants": [[module, name]]}. The output has for each
fork the constants by "module.name", the names of opcodes, the addresses of precompiles in hex, and
the block number or timestamp of the fork on mainnet.
"""

import json
import sys
from importlib import import_module
from typing import Any


def constant(fork: str, module: str, name: str) -> int | None:
    try:
        value = getattr(import_module(f"ethereum.forks.{fork}.{module}"), name, None)
    except ModuleNotFoundError:
        return None
    return None if value is None else int(value)


def rules(fork: str, constants: list[list[str]]) -> dict[str, Any]:
    package = f"ethereum.forks.{fork}"
    criteria = import_module(package).FORK_CRITERIA
    number = getattr(criteria, "block_number", None)
    mapping = import_module(f"{package}.vm.precompiled_contracts.mapping")
    found = {f"{module}.{name}": constant(fork, module, name) for module, name in constants}
    return {
        "constants": {name: value for name, value in found.items() if value is not None},
        "opcodes": [op.name for op in import_module(f"{package}.vm.instructions").Ops],
        "precompiles": [address.hex() for address in mapping.PRE_COMPILED_CONTRACTS],
        "activation": int(criteria.timestamp if number is None else number),
    }


asked = json.load(sys.stdin)
print(json.dumps({fork: rules(fork, asked["constants"]) for fork in asked["forks"]}))
