"""Input and output types of simulations: calls, overrides, payloads, states and results.

Values are Python types (bytes, int); quantities are in wei, gas units or seconds. The node decodes
JSON-RPC into these types; the simulator does not use hex or JSON.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from msgspec import Struct, field

from fastevm.core.execution.transaction.transaction_fields import AccessListEntry, Authorization
from fastevm.core.execution.types import Block, Withdrawal
from fastevm.errors import ExecutionFailed, FastevmError

ZERO_ADDRESS: Final = bytes(20)

# maximum gas of one call, and of all calls of one payload together
DEFAULT_GAS_CAP: Final = 50_000_000
# maximum size in bytes of the return data of all calls of one payload
DEFAULT_OUTPUT_CAP: Final = 10_000_000
DEFAULT_TIMEOUT: Final = 5.0  # maximum duration of a request in seconds


class CallRequest(Struct, frozen=True, kw_only=True):
    """A message call, or a creation if ``to`` is None. Other fields that are None get a default.

    The method that runs the call defines the defaults. ``skip_l1_charging``: omit the gas for the
    L1 data fee in calls and estimates on Arbitrum.
    """

    sender: bytes = ZERO_ADDRESS
    to: bytes | None = None
    gas: int | None = None
    gas_price: int | None = None
    max_fee_per_gas: int | None = None
    max_priority_fee_per_gas: int | None = None
    value: int = 0
    nonce: int | None = None
    data: bytes = b""
    access_list: tuple[AccessListEntry, ...] | None = None
    chain_id: int | None = None
    max_fee_per_blob_gas: int | None = None
    blob_versioned_hashes: tuple[bytes, ...] | None = None
    authorization_list: tuple[Authorization, ...] | None = None
    skip_l1_charging: bool = False


class AccountOverride(Struct, frozen=True, kw_only=True):
    """Overrides of one account. A field that is None keeps its value.

    ``state`` replaces the whole storage, ``state_diff`` only the given slots. Both map slots to
    values. The simulator raises an error if both are given.
    """

    nonce: int | None = None
    code: bytes | None = None
    balance: int | None = None
    state: Mapping[int, int] | None = None
    state_diff: Mapping[int, int] | None = None
    move_precompile_to: bytes | None = None


class BlockOverrides(Struct, frozen=True, kw_only=True):
    """Overrides of block fields. A field that is None keeps the default."""

    number: int | None = None
    time: int | None = None
    gas_limit: int | None = None
    fee_recipient: bytes | None = None
    prev_randao: bytes | None = None
    base_fee_per_gas: int | None = None
    blob_base_fee: int | None = None
    difficulty: int | None = None
    beacon_root: bytes | None = None
    withdrawals: tuple[Withdrawal, ...] | None = None


NO_BLOCK_OVERRIDES: Final = BlockOverrides()
StateOverrides = Mapping[bytes, AccountOverride]


class BlockStateCalls(Struct, frozen=True, kw_only=True):
    """One simulated block: overrides, and the calls that are its transactions."""

    calls: tuple[CallRequest, ...] = ()
    state_overrides: StateOverrides = field(default_factory=dict)
    block_overrides: BlockOverrides = NO_BLOCK_OVERRIDES


class SimulatePayload(Struct, frozen=True, kw_only=True):
    """The payload of eth_simulateV1.

    ``state_diff``, ``asset_changes``, ``access_list``, ``call_tree``: extensions, see
    `CallExtras`.
    """

    blocks: tuple[BlockStateCalls, ...]
    trace_transfers: bool = False
    validation: bool = False
    full_transactions: bool = False
    state_diff: bool = False
    asset_changes: bool = False
    access_list: bool = False
    call_tree: bool = False

    @property
    def has_extras(self) -> bool:
        """Returns whether the payload requests an extension of the standard."""
        return self.state_diff or self.asset_changes or self.access_list or self.call_tree


class SimulateOptions(Struct, frozen=True, kw_only=True):
    """Options of eth_simulateV1 that depend on the node's dialect and limits.

    - ``zero_state_root``: whether simulated headers have a zero state root, not the computed root
    - ``block_spacing``: seconds between simulated blocks
    - ``gas_cap``: maximum gas of all calls together (0: unlimited)
    - ``timeout``: seconds
    - ``output_cap``: maximum size in bytes of all return data together (None: unlimited)
    """

    zero_state_root: bool
    block_spacing: int
    gas_cap: int = DEFAULT_GAS_CAP
    timeout: float = DEFAULT_TIMEOUT
    output_cap: int | None = None


class ErrorForm(Struct, frozen=True, kw_only=True):
    """How the JSON of a simulated call reports a failure.

    ``as_text``: if true, ``error`` is a text and ``returnData`` contains the revert data. If false,
    ``error`` is an object with message, code (by kind of failure) and, for a revert, data.
    """

    as_text: bool
    revert_code: int = 3
    halt_code: int = -32015


class StateView(Struct, frozen=True, kw_only=True):
    """An immutable state to execute calls on, and its block.

    - ``header``: the header of the block whose execution gave this state (for ``pending``, of the
      pending block)
    - ``block_hash``: hash of that block
    - ``ancestors``: hashes of its ancestors, parent first
    - ``schedule``: the rules of ``header``
    - ``config``: the chain's configuration, for later blocks
    - ``next_block``: default block overrides of simulated blocks; its number and time apply to the
      first simulated block
    """

    header: Any
    block_hash: bytes
    layer: Any
    ancestors: Sequence[bytes]
    schedule: Any
    config: Any
    next_block: BlockOverrides = NO_BLOCK_OVERRIDES


class SimulationError(FastevmError):
    """The simulator refuses a request, or stops it at a limit or deadline.

    ``reason`` is a short name that the node's error table knows (``too_many_blocks``,
    ``block_numbers_order``, ``override`` ...); the message has the wording that clients match on.
    ``position``: the index of the block, and of the call in the block, if a call is refused; else
    None.
    """

    position: tuple[int, int] | None = None

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class CallResult(Struct, frozen=True, kw_only=True):
    """The outcome of one message call.

    ``output``: return data, or the revert data. ``error``: None on success, else the halt's text
    (``out of gas``, ``execution reverted`` ...). ``reverted``: true after REVERT, false after
    success or a halt.
    """

    success: bool
    output: bytes
    gas_used: int
    error: str | None = None
    reverted: bool = False

    def __bool__(self) -> bool:
        return self.success

    def check(self) -> Self:
        """Returns this result. Raises ExecutionFailed, with the reason, if the call failed."""
        if not self.success:
            raise ExecutionFailed(str(self.error), self)
        return self


class SimulatedLog(Struct, frozen=True):
    """A log of a simulated call.

    ``index``: position among all logs of the block, including reverted logs. ``pseudo``: the log
    reports an ether transfer and is not part of any bloom.
    """

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes
    index: int
    pseudo: bool


class AccountChange(Struct, frozen=True, kw_only=True):
    """The changes that a call made to one account: (before, after) for each field, None if
    unchanged.

    ``storage`` maps slots to (before, after).
    """

    balance: tuple[int, int] | None = None
    nonce: tuple[int, int] | None = None
    code: tuple[bytes, bytes] | None = None
    storage: Mapping[int, tuple[int, int]] = field(default_factory=dict)


StateDiff = Mapping[bytes, AccountChange]


class AssetChange(Struct, frozen=True, kw_only=True):
    """A change that a call made to one account's assets or approvals.

    ``kind`` says what changed:

    - ``native`` (wei, fees included), ``erc20``, ``erc721``, ``erc1155``: the account gained
      ``change`` of ``token`` (and ``token_id``). ``verified``: whether the token's storage confirms
      this.
    - ``approval``, ``approvalForAll``: ``counterparty`` may spend ``change``.
    - ``code``: the account's code changed.
    - ``delegation``: the account now delegates to ``counterparty``, or to no account if that is
      None.
    """

    kind: str
    address: bytes
    change: int = 0
    token: bytes | None = None
    token_id: int | None = None
    counterparty: bytes | None = None
    verified: bool | None = None


class CallFrame(Struct, frozen=True, kw_only=True):
    """A frame of a call tree. ``kind``: CALL, DELEGATECALL, CREATE2, SELFDESTRUCT ...

    ``address``: the account called or created. ``gas`` and ``gas_used`` exclude the intrinsic gas.
    ``error``: None on success. ``reason``: the decoded reason of a revert, or None.
    """

    kind: str
    caller: bytes
    address: bytes
    value: int
    gas: int
    gas_used: int
    data: bytes
    output: bytes
    error: str | None
    reason: str | None
    calls: tuple["CallFrame", ...]


class CallExtras(Struct, frozen=True, kw_only=True):
    """The requested extensions of a call's result. An extension that was not requested is None.

    ``access_list``: addresses and slots that are warm after the call, as (address, slots); empty if
    the call failed.
    """

    state_diff: StateDiff | None = None
    asset_changes: tuple[AssetChange, ...] | None = None
    access_list: tuple[tuple[bytes, tuple[int, ...]], ...] | None = None
    call_tree: CallFrame | None = None


class CallOutcome(Struct, frozen=True, kw_only=True):
    """The result of one simulated call. `CallResult` explains the members that both have.

    ``max_used_gas``: gas before refunds. ``created``: the address of the created contract.
    """

    success: bool
    reverted: bool
    output: bytes
    error: str | None
    gas_used: int
    max_used_gas: int
    logs: tuple[SimulatedLog, ...]
    created: bytes | None
    extras: CallExtras | None = None

    def __bool__(self) -> bool:
        return self.success

    def check(self) -> Self:
        """Returns this result. Raises ExecutionFailed, with the reason, if the call failed."""
        if not self.success:
            raise ExecutionFailed(str(self.error), self)
        return self


class SimulatedBlock(Struct, frozen=True, kw_only=True):
    """One block of a simulated chain: the block as if it were mined, and the results of its calls.

    ``senders``: sender of each call, because the block's transactions are not signed.
    """

    block: Block
    calls: tuple[CallOutcome, ...]
    senders: tuple[bytes, ...]


def is_transfer(
    view: StateView, request: CallRequest, state_overrides: Mapping[bytes, AccountOverride]
) -> bool:
    """Returns whether the call only transfers ether to an account without code."""
    if request.data or request.to is None or request.access_list or request.authorization_list:
        return False
    override = state_overrides.get(request.to)
    code = view.layer.code(request.to) if override is None else override.code
    return not code


def has_one_transfer_price(schedule: Any) -> bool:
    """Returns whether all transfers cost the same gas.

    Transfers cost different gas if the cost depends on the recipient (EIP-2780) or on the L1 data
    fee (Arbitrum).
    """
    return not (schedule.parameters["tx_recipient_cost"] or schedule.parameters["arbos_version"])
