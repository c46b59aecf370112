"""The public names of fastevm."""

from fastevm.contracts import Contract as Contract
from fastevm.contracts import ContractReverted as ContractReverted
from fastevm.contracts import contract as contract
from fastevm.errors import PrecompileFailed as PrecompileFailed
from fastevm.errors import Revert as Revert
from fastevm.evm import EVM as EVM
from fastevm.evm_result import ExecutionResult as ExecutionResult
from fastevm.execution.fees import blob_base_fee as blob_base_fee
from fastevm.execution.fees import next_base_fee as next_base_fee
from fastevm.execution.fees import next_excess_blob_gas as next_excess_blob_gas
from fastevm.execution.transaction import Transaction as Transaction
from fastevm.hooks import Hooks as Hooks
from fastevm.primitives.keccak import keccak256 as keccak256
from fastevm.simulate.api import simulate as simulate
from fastevm.simulate.api import simulate_async as simulate_async
from fastevm.simulate.batch.many import simulate_many as simulate_many
from fastevm.spec.fork_id import fork_id as fork_id
from fastevm.state.layer import Layer as Layer

__version__: str
