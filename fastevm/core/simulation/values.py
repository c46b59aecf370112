"""What callers ask the simulator for, as values: calls, overrides, payloads and the state below.

Values are native (bytes, int); quantities are in wei, gas units or seconds. The node decodes the
wire form before it comes here, so nothing below knows hex or JSON.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from fastevm.core.execution.transaction.transaction_fields import AccessListEntry, Authorization
from fastevm.core.execution.types import Block, Withdrawal
from fastevm.errors import FastevmError

ZERO_ADDRESS: Final = bytes(20)

DEFAULT_GAS_CAP: Final = 50_000_000  # gas of one call, and of all calls of one payload together
DEFAULT_OUTPUT_CAP: Final = 10_000_000  # bytes that the calls of one payload may return
DEFAULT_TIMEOUT: Final = 5.0  # seconds that one request may run


class CallRequest(Struct, frozen=True, kw_only=True):
    """A message call or (``to`` None) a creation; None means "use the default of the method".

    ``skip_l1_charging``: on Arbitrum, pay no gas for data on L1 in calls and estimates.
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
    """What to change of one account; None leaves a field.

    ``state`` replaces all storage, ``state_diff`` writes the given slots only; both map slot to
    value. To give both is an error of the simulator.
    """

    nonce: int | None = None
    code: bytes | None = None
    balance: int | None = None
    state: Mapping[int, int] | None = None
    state_diff: Mapping[int, int] | None = None
    move_precompile_to: bytes | None = None


class BlockOverrides(Struct, frozen=True, kw_only=True):
    """What to change of a block; None keeps the default."""

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
    """One simulated block: overrides, then calls."""

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
        """Whether more is asked for than the standard gives."""
        return self.state_diff or self.asset_changes or self.access_list or self.call_tree


class SimulateOptions(Struct, frozen=True, kw_only=True):
    """How a node answers eth_simulateV1: what its dialect and its limits decide.

    ``zero_state_root``: put 32 zero bytes into each simulated header before hashing, else the
    real root. ``block_spacing``: seconds from one simulated block to the next. ``gas_cap``: gas of
    all calls together (0: no bound); ``timeout``: seconds. ``output_cap``: bytes that all calls
    together may return (None: no bound).
    """

    zero_state_root: bool
    block_spacing: int
    gas_cap: int = DEFAULT_GAS_CAP
    timeout: float = DEFAULT_TIMEOUT
    output_cap: int | None = None


class ErrorForm(Struct, frozen=True, kw_only=True):
    """How the JSON of a simulated call tells that it failed.

    ``as_text``: ``error`` is a text and ``returnData`` what a revert gave back; else ``error`` is
    an object of message, code (by kind of failure) and, for a revert, data.
    """

    as_text: bool
    revert_code: int = 3
    halt_code: int = -32015


class StateView(Struct, frozen=True, kw_only=True):
    """One immutable state to run on, and the block that it belongs to.

    ``header``: the block whose state this is (the pending block's own header under ``pending``).
    ``block_hash``: its hash. ``ancestors``: hashes of the blocks before it, the parent first.
    ``schedule``: the rules of ``header``. ``config``: the chain's configuration, for later blocks.
    ``next_block``: what simulated blocks have where a payload does not say; number and time are
    those of the first one.
    """

    header: Any
    block_hash: bytes
    layer: Any
    ancestors: Sequence[bytes]
    schedule: Any
    config: Any
    next_block: BlockOverrides = NO_BLOCK_OVERRIDES


class SimulationError(FastevmError):
    """A request that the simulator refuses as a whole; nothing of it has run.

    ``reason`` is a short name that the node's error table knows (``too_many_blocks``,
    ``block_numbers_order``, ``override`` ...), the message the wording clients match on.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class CallResult(Struct, frozen=True, kw_only=True):
    """The outcome of one message call.

    ``output``: return data, or the revert data. ``error``: None on success, else the halt's text
    (``out of gas``, ``execution reverted`` ...). ``reverted``: REVERT, in contrast to a halt.
    """

    success: bool
    output: bytes
    gas_used: int
    error: str | None = None
    reverted: bool = False


class SimulatedLog(Struct, frozen=True):
    """A log of a simulated call. ``index`` counts all logs of the block, those taken back included;
    ``pseudo`` marks one that stands for moved ether and is part of no bloom."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes
    index: int
    pseudo: bool


class AccountChange(Struct, frozen=True, kw_only=True):
    """What a call changed of one account: (before, after), None where nothing did.

    ``storage`` maps slots to (before, after).
    """

    balance: tuple[int, int] | None = None
    nonce: tuple[int, int] | None = None
    code: tuple[bytes, bytes] | None = None
    storage: Mapping[int, tuple[int, int]] = field(default_factory=dict)


StateDiff = Mapping[bytes, AccountChange]


class AssetChange(Struct, frozen=True, kw_only=True):
    """What an account gained or lost in a call, or gave others a right to.

    ``kind``: ``native`` (wei, fees included), ``erc20``, ``erc721``, ``erc1155``: ``change`` of
    ``token`` (and ``token_id``), ``verified`` against the token's storage; ``approval`` and
    ``approvalForAll``: ``counterparty`` may spend ``change``; ``code``: it changed; ``delegation``:
    the account runs the code of ``counterparty`` from now on (None: no more).
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

    ``address``: the account called or created; ``gas`` and ``gas_used``: of the frame alone;
    ``error``: None on success; ``reason``: the decoded reason of a revert, if it has one.
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
    """What was asked for beyond the standard; None where it was not.

    ``access_list``: what the call had warmed at its end, as (address, slots); nothing of a call
    that failed.
    """

    state_diff: StateDiff | None = None
    asset_changes: tuple[AssetChange, ...] | None = None
    access_list: tuple[tuple[bytes, tuple[int, ...]], ...] | None = None
    call_tree: CallFrame | None = None


class CallOutcome(Struct, frozen=True, kw_only=True):
    """All that one simulated call gave; see CallResult for the shared names.

    ``max_used_gas`` is the gas before refunds; ``created`` the address of a creation.
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


class SimulatedBlock(Struct, frozen=True, kw_only=True):
    """One block of a simulated chain: the block as if it were mined, and what its calls gave.

    ``senders`` holds the sender of each call: the block's transactions carry no signature.
    """

    block: Block
    calls: tuple[CallOutcome, ...]
    senders: tuple[bytes, ...]


def is_transfer(
    view: StateView, request: CallRequest, state_overrides: Mapping[bytes, AccountOverride]
) -> bool:
    """Ether to an account without code, without data."""
    if request.data or request.to is None or request.access_list or request.authorization_list:
        return False
    override = state_overrides.get(request.to)
    code = view.layer.code(request.to) if override is None else override.code
    return not code


def has_one_transfer_price(schedule: Any) -> bool:
    """Whether all transfers have one price: not where it follows from the recipient (EIP-2780), or
    from the price of data on L1 (Arbitrum).
    """
    return not (schedule.parameters["tx_recipient_cost"] or schedule.parameters["arbos_version"])
