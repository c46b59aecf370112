"""Compares the execution of real OP Sepolia blocks by the transcription with the recorded results.

Source: fixtures of kona's executor (crates/proof/executor/testdata), each with its state, in
`op-stack/op-sepolia-holocene-blocks.json.gz` beside the repository; vault balances in
`vectors.json` there.
"""

import gzip
import json
from functools import cache
from typing import Any

from tests.differential.peers import Peer
from tests.shared_data import SHARED

from .specification.constants import BASE_FEE_VAULT, L1_FEE_VAULT, SEQUENCER_FEE_VAULT
from .specification.encoding import from_hex, to_hex
from .specification.witness import state_root_after

Fields = dict[str, Any]
FOLDER = SHARED / "op-stack"
NUMBERS = (26207960, 26207961, 26207962, 26207963, 26208384, 26208858, 26208927, 26211680)
# Header fields that are numbers: name in a case -> name in JSON-RPC.
NUMBER_NAMES = {
    "number": "number",
    "gas_limit": "gasLimit",
    "gas_used": "gasUsed",
    "timestamp": "timestamp",
    "base_fee": "baseFeePerGas",
    "blob_gas_used": "blobGasUsed",
    "excess_blob_gas": "excessBlobGas",
}
BYTES_NAMES = {
    "parent_hash": "parentHash",
    "coinbase": "miner",
    "state_root": "stateRoot",
    "transactions_root": "transactionsRoot",
    "receipts_root": "receiptsRoot",
    "bloom": "logsBloom",
    "extra_data": "extraData",
    "prev_randao": "mixHash",
    "withdrawals_root": "withdrawalsRoot",
    "parent_beacon_block_root": "parentBeaconBlockRoot",
}


@cache
def recorded() -> Fields:
    with gzip.open((FOLDER / "op-sepolia-holocene-blocks.json.gz").required) as file:
        found: Fields = json.load(file)
    return found


def block_numbered(number: int) -> Fields:
    return next(block for block in recorded()["blocks"] if int(str(block["number"]), 0) == number)


def renamed(header: Fields) -> Fields:
    """Returns a JSON-RPC header with the field names of a case."""
    numbers = {name: int(header[theirs], 16) for name, theirs in NUMBER_NAMES.items()}
    return numbers | {name: header[theirs] for name, theirs in BYTES_NAMES.items()}


def accounts_of(pre: Fields) -> Fields:
    return {
        address: {
            "nonce": int(account["nonce"], 16),
            "balance": int(account["balance"], 16),
            "code": recorded()["codes"].get(account["codeHash"], "0x"),
            "storage": {
                slot: int(value, 16) for slot, value in account["storage"].items() if int(value, 16)
            },
        }
        for address, account in pre.items()
        if account
    }


def case_of(block: Fields) -> Fields:
    header = renamed(block["header"])
    return {
        "chain_id": int(recorded()["chainId"]),
        "constants": {"denominator": 250, "elasticity": 6},
        "fork": "Holocene",
        "parent_fork": "Holocene",
        "parent": renamed(block["parent"]),
        "block": header,
        "ancestors": [],
        "pre": accounts_of(block["pre"]),
        "transactions": block["transactions"],
        "state_root": header["state_root"],
    }


def changed(pre: Fields, post: Fields) -> Fields:
    """Returns the changes between two states, in the format of `recorded_change`."""
    changes: Fields = {}
    nobody: Fields = {"nonce": 0, "balance": 0, "code": "0x", "storage": {}}
    for address in pre.keys() | post.keys():
        old, new = pre.get(address, nobody), post.get(address, nobody)
        found: Fields = {
            name: new[name] for name in ("nonce", "balance", "code") if new[name] != old[name]
        }
        slots = {int(slot, 16): value for slot, value in old["storage"].items()}
        later = {int(slot, 16): value for slot, value in new["storage"].items()}
        storage = {
            slot: later.get(slot, 0)
            for slot in slots.keys() | later.keys()
            if slots.get(slot, 0) != later.get(slot, 0)
        }
        if storage:
            found["storage"] = storage
        if found:
            changes[address] = found
    return changes


def recorded_change(post: Fields, pre: Fields) -> Fields:
    """Returns the recorded state change. Omits values that are zero before and after the block."""
    changes: Fields = {}
    for address, parts in post.items():
        found: Fields = {
            name: int(parts[name], 16)
            for name in ("nonce", "balance")
            if name in parts and (address in pre or int(parts[name], 16))
        }
        if parts.get("code", "0x") != "0x":
            found["code"] = parts["code"]
        if parts.get("storage"):
            found["storage"] = {
                int(slot, 16): int(value, 16) for slot, value in parts["storage"].items()
            }
        if found:
            changes[address] = found
    return changes


VAULTS = {
    "l1FeeVault": L1_FEE_VAULT,
    "baseFeeVault": BASE_FEE_VAULT,
    "sequencerFeeVault": SEQUENCER_FEE_VAULT,
}


def vaults_of(number: int) -> Fields:
    """Returns what each vault received in the block; empty if ``vectors.json`` does not say."""
    vectors = json.loads((FOLDER / "vectors.json").read_text())["vectors"]
    reported = [vector for vector in vectors if vector.get("id") == f"vaults-{number}"]
    return {name: reported[0][name] for name in VAULTS} if reported else {}


def differences_in(number: int, peer: Peer) -> list[str]:
    """Executes a recorded block.

    Compares receipts, state changes, state root, vaults and block hash.
    """
    block = block_numbered(number)
    case = case_of(block)
    outcome = peer.run(json.dumps(case))
    if "failure" in outcome:
        return [outcome["failure"]]
    change = changed(case["pre"], outcome["post"])
    nodes = [from_hex(recorded()["nodes"][index]) for index in block["nodes"]]
    root = state_root_after(nodes, from_hex(case["parent"]["state_root"]), change)
    got = {
        name: outcome["post"][to_hex(vault)]["balance"] - case["pre"][to_hex(vault)]["balance"]
        for name, vault in VAULTS.items()
    }
    pairs = {
        "receipts": ([done.get("receipt") for done in outcome["transactions"]], block["receipts"]),
        "changes": (change, recorded_change(block["post"], case["pre"])),
        "state root": (to_hex(root), case["block"]["state_root"]),
        "hash": (outcome["hash"], block["hash"]),
        "vaults": (got if vaults_of(number) else {}, vaults_of(number)),
    }
    return [f"{name}: {ours} and not {theirs}" for name, (ours, theirs) in pairs.items()
            if ours != theirs]  # fmt: skip
