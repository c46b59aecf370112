"""A fake endpoint of Arbitrum One. Its head has the recorded header of a real block."""

from __future__ import annotations

from typing import Any

from fastevm.core.execution.arbitrum.header import HeaderInfo
from fastevm.core.native.arbitrum.storage import STATE_ADDRESS, slot
from fastevm.core.state.source import RemoteAccount

from .fake_endpoint import HEAD, FakeEndpoint, block

ARBITRUM_ONE = 42_161
FIRST, L1_FIRST = 511_882_413 - HEAD, 26_125_271 - HEAD
BASE_FEE = 20_000_000
ROOT = "0x" + "5e" * 32
# mixHash of block 511,882,413 of Arbitrum One, which runs ArbOS 61.
RECORDED = bytes.fromhex("0000000000028aef00000000018ea3d7000000000000003d0001000000000000")
L1_PRICE, MINIMUM_FEE, LEVEL = 1_679_857, 20_000_000, 1


def arbitrum_block(index: int, version: int = 61) -> dict[str, Any]:
    """Returns block ``index`` of the endpoint. The head has the recorded header."""
    info = HeaderInfo.of(RECORDED)
    mixed = info._replace(l1_number=L1_FIRST + index, arbos_version=version).mix_hash()
    own = {
        "number": hex(FIRST + index),
        "difficulty": "0x1",
        "gasLimit": hex(1 << 50),
        "baseFeePerGas": hex(BASE_FEE),
        "miner": "0xa4b000000000000000000073657175656e636572",
        "extraData": ROOT,
        "mixHash": "0x" + mixed.hex(),
        "nonce": "0x000000000024f1a3",
        "l1BlockNumber": hex(L1_FIRST + index),
        "sendCount": hex(info.send_count),
        "sendRoot": ROOT,
    }
    return block(index) | own


class ArbitrumEndpoint(FakeEndpoint):
    """A fake endpoint with the storage of ArbOS and its precompiles' code."""

    def __init__(self, version: int = 61) -> None:
        super().__init__()
        self.chain_id = ARBITRUM_ONE
        self.version = version
        self.accounts[STATE_ADDRESS] = RemoteAccount(0, 1)
        self.put((), 0, version)
        self.put((), 7, LEVEL)
        self.put((b"\x00",), 7, L1_PRICE)
        self.put((b"\x01",), 2, BASE_FEE)
        self.put((b"\x01",), 3, MINIMUM_FEE)
        self.put((b"\x06",), 0, L1_FIRST + HEAD)
        for number in range(0x64, 0x75):
            self.accounts[number.to_bytes(20, "big")] = RemoteAccount(0, 1, b"\xfe")
        for number in range(256):
            self.put((b"\x06",), 1 + number, 7_000 + number)

    def eth_getTransactionByHash(self, digest: str) -> Any:
        return None

    def put(self, ids: tuple[bytes, ...], key: int, value: int) -> None:
        self.slots[STATE_ADDRESS, slot(ids, key)] = value

    def eth_getBlockByNumber(self, tag: str, full: bool) -> Any:
        below = {"latest": 0, "safe": 2, "finalized": 4}
        number = HEAD - below[tag] if tag in below else int(tag, 16) - FIRST
        return arbitrum_block(number, self.version) if 0 <= number <= HEAD else None

    def eth_getBlockByHash(self, digest: str, full: bool) -> Any:
        found = (arbitrum_block(index, self.version) for index in range(HEAD + 1))
        return next((item for item in found if item["hash"] == digest), None)
