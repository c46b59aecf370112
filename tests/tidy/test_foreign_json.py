"""Tests that all JSON from outside is decoded with `large_json.decode`, which limits its depth."""

import re

from .sources import ROOT

CALLED = re.compile(r"\b(?:msgspec\.json\.decode|json\.loads|Decoder)\(")
FOLDERS = ("rpc", "fastevm/fork", "fastevm/node", "fastevm/rpc_client", "fastevm/rpc_types")
ALLOWED = {
    "fastevm/fork/anvil_storage.py": "a file that the user names",
    "fastevm/fork/disk_cache.py": "our own file",
    "fastevm/fork/transaction_replay.py": "part of an answer that was decoded with its depth",
    "fastevm/node/op_stack/op_genesis.py": "a file of the package",
    "fastevm/rpc_types/contract_abi.py": "the ABI's decoder",
    "rpc/build_info.py": "a file that the user names",
    "rpc/contract_files.py": "a file that the user names",
    "rpc/dispatch/envelope.py": "after is_too_deep",
    "rpc/methods/explanations.py": "our own trace",
    "rpc/methods/failed_sends.py": "our own trace",
    "rpc/terminal/failed_requests.py": "our own answer",
    "rpc/terminal/block_log.py": "our own trace",
    "rpc/terminal/call_log.py": "our own trace",
    "rpc/transport/access.py": "a header, which is short",
}


def test_foreign_json_is_decoded_in_one_way() -> None:
    found = {
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if CALLED.search(path.read_text())
    }
    assert found == ALLOWED.keys()
