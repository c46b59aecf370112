"""Creates contracts with a message: ``EVM.create``."""

from collections.abc import Sequence

from fastevm.core.primitives.bytes_like import BytesLike
from fastevm.evm.machine import EVM, AccessList, ExecutionResult, Trace

def create(
    evm: EVM,
    initcode: BytesLike,
    *,
    sender: BytesLike = ...,
    value: int = 0,
    gas: int = 30_000_000,
    gas_price: int = 0,
    address: BytesLike | None = None,
    origin: BytesLike | None = None,
    commit: bool = False,
    blob_hashes: Sequence[BytesLike] = (),
    access_list: AccessList | None = None,
    timeout: float | None = None,
    trace: Trace | None = None,
) -> ExecutionResult: ...
