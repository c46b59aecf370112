"""Runs every command of cast that calls a node.

``python -m tests.ecosystem.development.cast_commands URL KEY CAST`` prints a line of JSON for each
command, with the command's name and ``value`` true, or with ``error``.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from typing import Any, Final

from fastevm.rpc_client.blocking import JsonRpcClient

from .shapes import prepare

# Time limit of one command. cast needs half a minute for a blob.
SECONDS: Final = 120.0
IMPLEMENTATION: Final = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc"
AUTHORIZATION: Final = "send $nobody --auth $nobody --private-key $key"

# A command, and a regular expression that its output must match.
COMMANDS: Final[tuple[tuple[str, str], ...]] = (
    ("access-list $counter", "gas used"),
    ("admin $counter", "0x0{40}"),
    ("age latest", "20"),
    ("balance $owner", r"^\d+"),
    ("balance $owner --ether", r"^\d+\.\d"),
    ("balance $owner --erc20 $token", "^0"),
    ("base-fee latest", r"^\d+"),
    ("block latest", "baseFeePerGas"),
    ("block latest --full --json", "transactions"),
    ("block 1 -f hash", "^0x"),
    ("block-number", r"^\d+$"),
    ("call $counter", "^0x"),
    ("call $token 'name()(string)'", "Dollar"),
    ("call --trace $counter", "Traces"),
    ("call $counter --override-balance $nobody:5", "^0x"),
    ("call $counter --block.time 99", "^0x"),
    ("call --create 0x60015f5260205ff3", "^0x"),
    ("chain", r"\w"),
    ("chain-id", "31337"),
    ("client", "anvil"),
    ("code $counter", "^0x5f54"),
    ("codehash $counter", "^0x"),
    ("codesize $counter", r"^\d+"),
    ("compute-address $owner", "0x"),
    ("da-estimate latest", r"\d"),
    ("erc20-token balance $token $owner", "^0"),
    ("erc20-token name $token", "Dollar"),
    ("erc20-token symbol $token", "USD"),
    ("erc20-token decimals $token", "6"),
    ("erc20-token total-supply $token", "0"),
    ("erc20-token mint $token $owner 5 --private-key $key", "."),
    ("erc20-token transfer $token $nobody 2 --private-key $key", "."),
    ("erc20-token approve $token $nobody 2 --private-key $key", "."),
    ("erc20-token allowance $token $owner $nobody", "2"),
    ("estimate $counter", r"^\d+"),
    ("estimate --create 0x60015f5260205ff3", r"^\d+"),
    ("find-block 1800000000", r"^\d+"),
    ("gas-price", r"^\d+"),
    ("implementation $counter", "0x0{40}"),
    ("logs --from-block 0 --address $counter", "topics"),
    ("logs --from-block 0 'Transfer(address,address,uint256)'", "topics"),
    ("mktx $nobody --value 1 --private-key $key", "^0x02"),
    ("nonce $owner", r"^\d+"),
    ("nonce $owner --block pending", r"^\d+"),
    ("proof $counter 0", "storageProof"),
    ("publish $raw", "0x"),
    ("receipt $call", "gasUsed"),
    ("receipt $call status", "1|true"),
    ("rpc eth_chainId", "0x7a69"),
    ("rpc eth_getBlockByNumber latest false", "number"),
    ("run $call", "Transaction successfully executed"),
    ("run $call --quick", "Transaction successfully executed"),
    ("run $failure", "Revert"),
    ("send $nobody --value 1 --private-key $key", "status +1"),
    ("send $nobody --value 1 --private-key $key --legacy", "status +1"),
    ("send $nobody --value 1 --private-key $key --async", "^0x"),
    ("send $nobody --value 1 --from $second --unlocked", "status +1"),
    ("send $token 'transfer(address,uint256)' $nobody 1 --private-key $key", "status +1"),
    ("send --private-key $key --create 0x60015f5260205ff3", "contractAddress +0x"),
    (AUTHORIZATION, "status +1"),
    ("send $nobody --private-key $key --blob --path $file", "status +1"),
    ("send $nobody --private-key $key --access-list '[]'", "status +1"),
    ("storage $counter 0", "^0x"),
    ("storage-root $counter", "^0x"),
    ("trace $call", "result|callType|type"),
    ("tx $payment", "blockHash"),
    ("tx $payment --raw", "^0x02"),
    ("tx --from $owner --nonce 0", "blockHash"),
    ("tx-pool status", "pending"),
    ("tx-pool content", "pending"),
    ("tx-pool content-from $owner", ""),
    ("tx-pool inspect", "pending"),
    ("rpc anvil_impersonateAccount $nobody", "null"),
    ("rpc anvil_setBalance $nobody 0xde0b6b3a7640000", "null"),
    ("send $owner --value 1 --from $nobody --unlocked", "status +1"),
    ("rpc anvil_mine 3", "null"),
    ("rpc evm_increaseTime 60", r"\d"),
    ("rpc evm_snapshot", "0x"),
)  # fmt: skip


def run(cast: str, url: str, words: list[str], expected: str) -> str | None:
    """Runs a command. Returns None if its output is as expected, otherwise output or error."""
    environment = os.environ | {"ETH_RPC_URL": url, "NO_COLOR": "1"}
    done = subprocess.run(
        [cast, *words], capture_output=True, text=True, timeout=SECONDS, env=environment
    )
    if done.returncode:
        return done.stderr.strip() or f"exit status {done.returncode}"
    found = re.search(expected, done.stdout, re.MULTILINE | re.IGNORECASE)
    return None if found else f"unexpected output: {done.stdout[:200]}"


def main() -> None:
    """Runs all commands."""
    url, key, cast = sys.argv[1:]
    node = JsonRpcClient(url)
    values: dict[str, Any] = prepare(node) | {"key": key, "file": __file__}
    values["second"] = node.call("eth_accounts")[1]
    for line, expected in COMMANDS:
        words = [
            re.sub(r"\$(\w+)", lambda found: str(values[found[1]]), word)
            for word in shlex.split(line)
        ]
        reported: dict[str, Any] = {"name": line, "value": True}
        try:
            if wrong := run(cast, url, words, expected):
                reported = {"name": line, "error": wrong}
        except subprocess.TimeoutExpired:
            reported = {"name": line, "error": f"nothing within {SECONDS} seconds"}
        print(json.dumps(reported), flush=True)


if __name__ == "__main__":
    main()
