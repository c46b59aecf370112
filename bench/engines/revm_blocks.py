"""Times the messages of real blocks on revm, through pyrevm in its own environment.

pyrevm charges no fees, increments no nonce, makes no receipts, and has no blob hashes. It treats
every slot of the pre-state as warm, so some messages end differently than on the chain. All of this
makes revm faster. pyrevm has the forks from Frontier to Cancun.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastevm.bench.engines.evms import PEER_KINDS, Peer, PeerError
from fastevm.chain.stateless.verification import schedule_of
from fastevm.conformance.fields import accounts_of
from fastevm.conformance.real_blocks import RealBlock

MODULE: Final = "on_pyrevm_blocks"
SPECIFICATIONS: Final = {
    "Frontier": "FRONTIER", "Homestead": "HOMESTEAD", "DAO": "DAO_FORK",
    "TangerineWhistle": "TANGERINE", "SpuriousDragon": "SPURIOUS_DRAGON",
    "Byzantium": "BYZANTIUM", "Petersburg": "PETERSBURG", "Istanbul": "ISTANBUL",
    "MuirGlacier": "MUIR_GLACIER", "Berlin": "BERLIN", "London": "LONDON",
    "ArrowGlacier": "ARROW_GLACIER", "GrayGlacier": "GRAY_GLACIER", "Paris": "MERGE",
    "Shanghai": "SHANGHAI", "Cancun": "CANCUN",
}  # fmt: skip
"""Fork name here -> fork name in pyrevm."""


class Revm:
    """pyrevm in a separate process, which keeps the blocks that it receives."""

    def __init__(self) -> None:
        kind = next(kind for kind in PEER_KINDS if kind.name == "pyrevm")
        python = kind.python()
        if python is None:
            raise PeerError(f"no environment .venv-{kind.name} with {kind.requirement!r} in it")
        self.peer = Peer(kind.name, MODULE, python, slow=False)

    def prepare(self, real: RealBlock, fields: Mapping[str, Any]) -> bool:
        """Sends a block to pyrevm. Returns False if pyrevm does not have the block's fork."""
        name = schedule_of(real.block.header, real.chain).name
        if name not in SPECIFICATIONS:
            return False
        number = real.block.header.number
        accounts = accounts_of(fields["pre"]["accounts"])
        self.peer.ask(
            do="prepare", name=number, found=block_of(real, SPECIFICATIONS[name], accounts)
        )
        return True

    def run(self, number: int, succeeded: Sequence[bool]) -> tuple[float, float]:
        """Returns the seconds of a run, and the share of messages that end as expected."""
        answer = self.peer.ask(do="run", name=number)
        pairs = zip(answer["succeeded"], succeeded, strict=True)
        alike = sum(theirs == ours for theirs, ours in pairs)
        return answer["seconds"], alike / len(succeeded)

    def close(self) -> None:
        """Ends the process."""
        self.peer.close()


def block_of(
    real: RealBlock, fork: str, accounts: Mapping[bytes, Mapping[str, Any]]
) -> dict[str, Any]:
    """Returns a block as the worker expects it: its environment, its state and its messages."""
    header = real.block.header
    return {
        "fork": fork,
        "block": {
            "number": header.number,
            "coinbase": hexed(header.coinbase),
            "timestamp": header.timestamp,
            "difficulty": hex(header.difficulty),
            "prev_randao": hexed(header.prev_randao),
            "base_fee": hex(header.base_fee_per_gas or 0),
            "gas_limit": header.gas_limit,
        },
        "accounts": {
            hexed(address): {
                "balance": hex(account.get("balance", 0)),
                "nonce": account.get("nonce", 0),
                "code": hexed(account.get("code", b"")),
                "storage": {
                    hex(slot): hex(value) for slot, value in account.get("storage", {}).items()
                },
            }
            for address, account in accounts.items()
        },
        "messages": [
            {
                "from": hexed(transaction.sender or b""),
                "to": None if transaction.to is None else hexed(transaction.to),
                "data": hexed(transaction.data),
                "value": hex(transaction.value),
                "gas": transaction.gas_limit,
            }
            for transaction in real.block.transactions
        ],
    }


def hexed(value: bytes) -> str:
    """Returns bytes in the hex form that a worker reads."""
    return "0x" + value.hex()
