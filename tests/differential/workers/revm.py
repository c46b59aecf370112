"""Runs the only transaction of a case on revm through pyrevm, in a separate environment.

Limits of pyrevm that the cases respect:

- It supports no fees and does not increment the sender's nonce.
- Before Shanghai it prices calldata and warms the coinbase by later rules, and before Cancun it
  does not complete self-destructs. So only Cancun is compared.
- In Cancun, a contract that was created and destroyed in a transaction keeps its storage.
- It treats given slots as warm, so cases have no storage. Only known slots are compared.
"""

import re
from importlib.metadata import version
from typing import Any

from pipe import hexed, serve, unhexed
from pyrevm import EVM, AccountInfo, BlockEnv, CfgEnv, Env

SPECIFICATIONS = {"Cancun": "CANCUN"}
SLOTS = range(5)
OUTPUT = re.compile(r"output: 0x([0-9a-f]*)")


def evm_of(case: dict[str, Any]) -> EVM:
    block = case["block"]
    environment = BlockEnv(
        number=block["number"],
        coinbase=block["coinbase"],
        timestamp=block["timestamp"],
        difficulty=block["difficulty"],
        prevrandao=block["prev_randao"].to_bytes(32, "big"),
        basefee=block["base_fee"],
        gas_limit=block["gas_limit"],
        excess_blob_gas=block["excess_blob_gas"],
    )
    environments = Env(cfg=CfgEnv(chain_id=block["chain_id"]), block=environment)
    evm = EVM(env=environments, gas_limit=block["gas_limit"], spec_id=SPECIFICATIONS[case["fork"]])
    for address, account in case["pre"].items():
        code = unhexed(account["code"])
        evm.insert_account_info(
            address,
            AccountInfo(balance=account["balance"], nonce=account["nonce"], code=code or None),
        )
        for slot, word in account["storage"].items():
            evm.insert_account_storage(address, int(slot, 16), word)
    return evm


def run_transaction(evm: EVM, fields: dict[str, Any]) -> dict[str, Any]:
    output, reason = b"", ""
    try:
        output = evm.message_call(
            caller=fields["sender"],
            to=fields["to"],
            calldata=unhexed(fields["data"]),
            value=fields["value"],
            gas=fields["gas_limit"],
            gas_price=0,
        )
    except RuntimeError as error:
        reason = str(error)
        found = OUTPUT.search(reason)
        output = bytes.fromhex(found[1]) if found else b""
    result = evm.result
    return {
        "status": "success" if result.is_success else "halt" if result.is_halt else "revert",
        "reason": reason,
        "gas_used": result.gas_used,
        "output": hexed(output),
        "logs": [
            [log.address.lower(), [hexed(topic) for topic in log.data[0]], hexed(log.data[1])]
            for log in result.logs
        ],
    }


def account_of(evm: EVM, address: str, before: dict[str, Any]) -> dict[str, Any]:
    """Returns the properties of an account to compare.

    The storage of new accounts is not compared.
    """
    reported: dict[str, Any] = {"balance": evm.get_balance(address)}
    if before["nonce"] or before["code"] != "0x" or not evm.basic(address).nonce:
        reported["storage"] = {hex(slot): evm.storage(address, slot) for slot in SLOTS}
    return reported


def run(case: dict[str, Any]) -> dict[str, Any]:
    if case["fork"] not in SPECIFICATIONS:
        return {"unsupported": case["fork"]}
    evm = evm_of(case)
    outcome = run_transaction(evm, case["transactions"][0])
    return {
        "transactions": [outcome],
        "accounts": {
            address: account_of(evm, address, before) for address, before in case["pre"].items()
        },
    }


serve(run, "pyrevm " + version("pyrevm"))
