"""Runs the messages of a real block on pyrevm, one after another on one state."""

import time
from importlib.metadata import version as installed
from typing import Any

import pyrevm
from protocol import data, number

BLOCKS: "dict[str, dict[str, Any]]" = {}
NO_LIMIT = 2**64 - 1


def machine(found: "dict[str, Any]") -> pyrevm.EVM:
    """Returns a machine in the block, with the state before the block."""
    block = found["block"]
    environment = pyrevm.BlockEnv(
        number=block["number"], coinbase=block["coinbase"], timestamp=block["timestamp"],
        difficulty=number(block["difficulty"]), prevrandao=data(block["prev_randao"]),
        basefee=number(block["base_fee"]), gas_limit=block["gas_limit"], excess_blob_gas=0,
    )  # fmt: skip
    settings = pyrevm.Env(pyrevm.CfgEnv(chain_id=1), environment)
    evm = pyrevm.EVM(settings, gas_limit=NO_LIMIT, spec_id=found["fork"])
    for address, account in found["accounts"].items():
        info = pyrevm.AccountInfo(nonce=account["nonce"], code=data(account["code"]) or None)
        evm.insert_account_info(address, info)
        evm.set_balance(address, number(account["balance"]))
        for slot, value in account["storage"].items():
            evm.insert_account_storage(address, number(slot), number(value))
    return evm


def run(evm: pyrevm.EVM, message: "tuple[Any, ...]") -> bool:
    """Runs a message and returns whether it succeeded."""
    sender, to, payload, value, gas = message
    try:
        if to is None:
            evm.deploy(sender, payload, value, gas)
        else:
            evm.message_call(sender, to, payload, value, gas)
    except RuntimeError:
        return False
    return True


def answer(request: "dict[str, Any]") -> "dict[str, Any]":
    """Handles a request: ``hello``, ``prepare`` (a block by name) or ``run``."""
    kind = request["do"]
    if kind == "hello":
        return {"version": installed("pyrevm")}
    if kind == "prepare":
        BLOCKS[request["name"]] = request["found"]
        return {}
    found = BLOCKS[request["name"]]
    evm = machine(found)
    messages = [
        (item["from"], item["to"], data(item["data"]), number(item["value"]), item["gas"])
        for item in found["messages"]
    ]
    start = time.thread_time()
    succeeded = [run(evm, message) for message in messages]
    return {"seconds": time.thread_time() - start, "succeeded": succeeded}
