"""The environment of chain, block and transaction, with pyrevm's interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from fastevm.core.execution.block.fees import fake_exponential
from fastevm.core.primitives.hex import checksum_address
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.schedule import schedule_for

HIGHEST_GAS: Final = 2**64 - 1
ZERO_ADDRESS: Final = "0x" + "00" * 20
ANALYSES: Final = ("raw", "check", "analyse")
# pyrevm uses Cancun's blob fee in every fork.
BLOB_FEE_FRACTION: Final = int(schedule_for("cancun").parameters["blob_base_fee_fraction"])


def unsigned(value: int, bits: int = 256) -> int:
    """Returns the number. Raises OverflowError if it is negative or too large."""
    if value >> bits:
        raise OverflowError(f"{value} does not fit {bits} unsigned bits")
    return value


def address_bytes(address: str) -> bytes:
    """Decodes 40 hex digits with or without 0x. Raises TypeError for anything else."""
    if not isinstance(address, str):
        raise TypeError(f"an address is a str, not {type(address).__name__}")
    digits = address.removeprefix("0x")
    if len(digits) != 40:
        raise TypeError(f"an address has 40 hex digits, not {len(digits)}")
    try:
        return bytes.fromhex(digits)
    except ValueError:
        raise TypeError(f"no hex digits: {address!r}") from None


def hash_bytes(value: bytes) -> bytes:
    """Returns 32 bytes. Raises TypeError for another length."""
    if len(value) != 32:
        raise TypeError(f"a hash has 32 bytes, not {len(value)}")
    return bytes(value)


def blob_gas_price(excess_blob_gas: int) -> int:
    """Returns the blob base fee in wei per blob gas."""
    return fake_exponential(1, excess_blob_gas, BLOB_FEE_FRACTION)


class CfgEnv(Struct):
    """The chain id and the code size limit (None: the limit of the fork)."""

    chain_id: int | None = None
    limit_contract_code_size: int | None = None
    perf_analyse_created_bytecodes: str | None = None

    def __post_init__(self) -> None:
        self.chain_id = 1 if self.chain_id is None else unsigned(self.chain_id, 64)
        analysis = (self.perf_analyse_created_bytecodes or "analyse").lower().replace("z", "s")
        if analysis not in ANALYSES:
            raise ValueError(f"an analysis is one of {', '.join(ANALYSES)}, not {analysis!r}")
        self.perf_analyse_created_bytecodes = analysis


class BlockEnv(Struct):
    """The block environment. None means pyrevm's default."""

    number: int | None = None
    coinbase: str | None = None
    timestamp: int | None = None
    difficulty: int | None = None
    prevrandao: bytes | None = None
    basefee: int | None = None
    gas_limit: int | None = None
    excess_blob_gas: int | None = 0

    def __post_init__(self) -> None:
        self.number = unsigned(self.number or 0, 64)
        self.coinbase = checksum_address(address_bytes(self.coinbase or ZERO_ADDRESS))
        self.timestamp = 1 if self.timestamp is None else unsigned(self.timestamp, 64)
        self.difficulty = unsigned(self.difficulty or 0)
        self.prevrandao = hash_bytes(self.prevrandao or bytes(32))
        self.basefee = unsigned(self.basefee or 0)
        self.gas_limit = HIGHEST_GAS if self.gas_limit is None else unsigned(self.gas_limit)
        self.excess_blob_gas = unsigned(self.excess_blob_gas or 0, 64)

    @property
    def blob_gasprice(self) -> int | None:
        """The blob base fee for the excess blob gas, in wei per blob gas."""
        return None if self.excess_blob_gas is None else blob_gas_price(self.excess_blob_gas)


class TxEnv(Struct):
    """The transaction environment. A message overrides the fields that it has itself."""

    caller: str | None = None
    gas_limit: int | None = None
    gas_price: int | None = None
    gas_priority_fee: int | None = None
    to: str | None = None
    value: int | None = None
    data: bytes | None = None
    chain_id: int | None = None
    nonce: int | None = None
    salt: int | None = None
    access_list: Sequence[tuple[str, Sequence[int]]] | None = None
    blob_hashes: list[bytes] | None = None
    max_fee_per_blob_gas: int | None = None

    def __post_init__(self) -> None:
        self.caller = checksum_address(address_bytes(self.caller or ZERO_ADDRESS))
        self.gas_limit = HIGHEST_GAS if self.gas_limit is None else unsigned(self.gas_limit, 64)
        self.gas_price = unsigned(self.gas_price or 0)
        self.to = None if self.to is None else checksum_address(address_bytes(self.to))
        self.value = unsigned(self.value or 0)
        self.data = bytes(self.data or b"")
        if self.to is not None:
            self.salt = None
        self.access_list = [
            (checksum_address(address_bytes(address)), list(slots))
            for address, slots in self.access_list or ()
        ]
        self.blob_hashes = [hash_bytes(value) for value in self.blob_hashes or ()]


class Env:
    """The chain, block and transaction environment. Attributes return copies."""

    __slots__ = ("_block", "_cfg", "_tx")

    def __init__(
        self,
        cfg: CfgEnv | None = None,
        block: BlockEnv | None = None,
        tx: TxEnv | None = None,
    ) -> None:
        self._cfg = CfgEnv() if cfg is None else replace(cfg)
        self._block = BlockEnv() if block is None else replace(block)
        self._tx = TxEnv() if tx is None else replace(tx)

    @property
    def cfg(self) -> CfgEnv:
        return replace(self._cfg)

    @property
    def block(self) -> BlockEnv:
        return replace(self._block)

    @property
    def tx(self) -> TxEnv:
        return replace(self._tx)

    def __repr__(self) -> str:
        return f"Env(cfg={self._cfg}, block={self._block}, tx={self._tx})"
