"""Executing and building blocks."""

from collections.abc import Callable, Iterable, Sequence

from fastevm.core.execution.block.block_result import BlockResult
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Header, Receipt, Withdrawal
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer

L2_TO_L1_MESSAGE_PASSER: bytes

class BlockBuilder:
    """A block under construction on top of a layer.

    ``begin()`` makes the system calls at the block's start, ``add()`` executes a transaction,
    ``snapshot()`` returns the current state, ``seal()`` ends the block. ``header`` is a draft with
    all fields that execution does not compute (see
    `fastevm.core.execution.block.header_draft.draft_header`).
    """

    header: Header
    schedule: ForkSchedule
    ommers: tuple[Header, ...]
    withdrawals: tuple[Withdrawal, ...] | None
    threads: int

    def __init__(
        self,
        layer: Layer,
        header: Header,
        schedule: ForkSchedule,
        *,
        chain_id: int,
        deposit_contract: bytes,
        ancestors: Sequence[bytes] = (),
        withdrawals: Iterable[Withdrawal] | None = None,
        ommers: Iterable[Header] = (),
        suspends: bool = False,
        root_of: Callable[[Layer], bytes] | None = None,
        threads: int = 1,
        access_list: bytes | None = None,
    ) -> None: ...
    def begin(self) -> None: ...
    def add(self, transaction: Transaction) -> Receipt: ...
    def cancel(self) -> None: ...
    def resume(self) -> None: ...
    def add_all(self, transactions: Iterable[Transaction]) -> None: ...
    def receipt(self, index: int) -> Receipt: ...
    @property
    def receipts(self) -> tuple[Receipt, ...]: ...
    @property
    def transactions(self) -> tuple[Transaction, ...]: ...
    @property
    def gas_used(self) -> int: ...
    @property
    def blob_gas_used(self) -> int: ...
    def has_gas_for(self, transaction: Transaction, gas_budget: int) -> bool: ...
    @property
    def receipts_root(self) -> bytes: ...
    @property
    def logs_bloom(self) -> bytes: ...
    def snapshot(self) -> Layer: ...
    def access_list(self) -> bytes | None: ...
    def rewards(self, draft: Block) -> list[tuple[bytes, int]]: ...
    def finish(self, *, state_root: bool = True) -> BlockResult: ...
    def seal(self, *, state_root: bool = True) -> tuple[Block, BlockResult]: ...

def execute_block(
    layer: Layer,
    block: Block,
    schedule: ForkSchedule,
    *,
    chain_id: int,
    deposit_contract: bytes,
    ancestors: Sequence[bytes] = (),
    state_root: bool = True,
    root_of: Callable[[Layer], bytes] | None = None,
    threads: int = 1,
    on_builder: Callable[[BlockBuilder], object] | None = None,
) -> BlockResult: ...
