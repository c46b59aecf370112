"""Creates contracts with a message: ``EVM.create``."""

from collections.abc import Iterable, Sequence

from fastevm.evm.machine import EVM, ExecutionResult, Trace

def create(
    evm: EVM,
    initcode: bytes | str,
    *,
    sender: bytes | str = ...,
    value: int = 0,
    gas: int = 30_000_000,
    gas_price: int = 0,
    address: bytes | str | None = None,
    origin: bytes | str | None = None,
    commit: bool = False,
    blob_hashes: Sequence[bytes | str] = (),
    access_list: Iterable[tuple[bytes | str, Iterable[int | bytes]]] | None = None,
    timeout: float | None = None,
    trace: Trace | None = None,
) -> ExecutionResult: ...
