"""One block of simulated calls."""

from collections.abc import Sequence

from fastevm.core.execution.block.block import BlockBuilder
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import BlockEnvironment, Withdrawal
from fastevm.core.simulation.deadline import Deadline
from fastevm.core.simulation.plan import Plan
from fastevm.core.simulation.values import CallOutcome, CallRequest, StateView

class Runner(BlockBuilder):
    """A block of simulated calls. Only one thread may use it at a time.

    ``open`` attaches the runner to a state, ``override`` changes what calls see, ``simulate`` runs
    a call. ``begin`` and ``seal`` work as in `BlockBuilder`. The runner can be reused for later
    blocks.
    """

    def __init__(self) -> None: ...
    def open(
        self,
        view: StateView,
        *,
        withdrawals: Sequence[Withdrawal] | None = None,
        environment: BlockEnvironment | None = None,
    ) -> None: ...
    def set_deadline(self, deadline: Deadline) -> None: ...
    def cancel(self) -> None: ...
    def override(self, plan: Plan) -> None: ...
    def balance(self, address: bytes) -> int: ...
    def nonce(self, address: bytes) -> int: ...
    def simulate(self, plan: Plan, gas: int) -> CallOutcome: ...

def transaction_of(request: CallRequest, gas: int, nonce: int, view: StateView) -> Transaction: ...
