"""Converts a `Layer`, an `EVM` or a view to the `StateView` that simulations run on."""

from typing import Any, Final, TypedDict

from msgspec import Struct

from fastevm.core.execution.arbitrum.header import DIFFICULTY, HeaderInfo
from fastevm.core.execution.block.fees import next_extra_data
from fastevm.core.execution.block.header_draft import later_fields
from fastevm.core.execution.types import ZERO_ADDRESS, ZERO_HASH, BlockEnvironment, Header
from fastevm.core.primitives.replace import replace
from fastevm.core.primitives.suggestion import nearest
from fastevm.core.simulation.values import (
    DEFAULT_GAS_CAP,
    BlockOverrides,
    StateView,
)
from fastevm.core.spec.activation import Activations
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer
from fastevm.rpc_types.native_values import address_of, bytes_of, quantity_of, uint64_of, word_of

DEFAULT_FORK: Final = "osaka"


class BlockOptions(TypedDict, total=False):
    """Fields of the block for a simulation on a Layer; see `view_of`."""

    fork: str | ForkSchedule | None
    chain_id: int | None
    number: int | None
    timestamp: int | None
    gas_limit: int | None
    base_fee: int | None
    coinbase: bytes | str | None
    prev_randao: int | None


# Option name -> its block override, and the header field.
BLOCK_FIELDS: Final = {
    "number": ("number", "number"),
    "timestamp": ("time", "timestamp"),
    "gas_limit": ("gas_limit", "gas_limit"),
    "base_fee": ("base_fee_per_gas", "base_fee_per_gas"),
    "coinbase": ("fee_recipient", "coinbase"),
    "prev_randao": ("prev_randao", "mix_hash"),
}
BLOCK_OPTIONS: Final = tuple(BlockOptions.__annotations__)
# Options of `simulate` and `simulate_many`, for suggestions on misspelt names.
SIMULATION_OPTIONS: Final = (
    "state_root", "block_spacing", "gas_cap", "timeout", "threads", "executor", "ordered",
    "columns", "balances", "progress", "chunk_size",
)  # fmt: skip
DEFAULT_BLOCK_TIME_MS: Final = 12_000
# The default block of a Layer. Its gas limit never restricts a call.
BARE_BLOCK: Final = BlockEnvironment(
    coinbase=ZERO_ADDRESS,
    number=0,
    timestamp=0,
    gas_limit=DEFAULT_GAS_CAP,
    chain_id=1,
    difficulty=0,
    prev_randao=0,
    base_fee=0,
    blob_base_fee=1,
)


class BareChain(Struct, frozen=True, kw_only=True):
    """The constants of a chain that consists of only a state.

    ``has_system_contracts``: if False, the system contracts may be missing. Blocks then have no
    withdrawal and consolidation requests.

    ``fills_gaps``: if False, the first simulated block may have any number, and no empty blocks are
    added before it.
    """

    chain_id: int
    activations: Activations
    deposit_contract: bytes = ZERO_ADDRESS
    block_time_ms: int = DEFAULT_BLOCK_TIME_MS
    has_system_contracts: bool = False
    fills_gaps: bool = False


def view_of(
    state: Any,
    *,
    fork: str | ForkSchedule | None = None,
    chain_id: int | None = None,
    number: int | None = None,
    timestamp: int | None = None,
    gas_limit: int | None = None,
    base_fee: int | None = None,
    coinbase: bytes | str | None = None,
    prev_randao: int | None = None,
) -> StateView:
    """Returns a view of a state, as block ``number`` of a chain with one fork.

    ``state``: a Layer, or an EVM, whose block gives the defaults. For a Layer the default block is
    number 0 of chain 1 under Osaka, with a gas limit of 50 million. ``timestamp`` in seconds,
    ``base_fee`` in wei, ``coinbase`` 20 bytes or hex text. Blocks simulated on top also use
    ``coinbase`` and ``prev_randao``. Raises UnknownForkError for an unknown fork, and TypeError for
    other states.
    """
    layer = getattr(state, "state", state)
    if not isinstance(layer, Layer):
        raise TypeError(f"expected a Layer, an EVM or a StateView, found {type(state).__name__}")
    own = environment_of_machine(state)
    given = replace(
        own,
        coinbase=own.coinbase if coinbase is None else address_of(coinbase, "coinbase"),
        number=own.number if number is None else uint64_of(number, "number"),
        timestamp=own.timestamp if timestamp is None else uint64_of(timestamp, "timestamp"),
        gas_limit=own.gas_limit if gas_limit is None else uint64_of(gas_limit, "gas_limit"),
        chain_id=own.chain_id if chain_id is None else uint64_of(chain_id, "chain_id"),
        prev_randao=own.prev_randao if prev_randao is None else word_of(prev_randao, "prev_randao"),
        base_fee=own.base_fee if base_fee is None else quantity_of(base_fee, "base_fee"),
    )
    schedule = getattr(state, "schedule", DEFAULT_FORK) if fork is None else fork
    view = _view(layer, schedule, given)
    chosen = None if prev_randao is None else given.prev_randao.to_bytes(32, "big")
    return replace(view, next_block=BlockOverrides(prev_randao=chosen)) if chosen else view


def view_before(machine: Any) -> StateView:
    """Returns a view of an EVM's state on which the first simulated block is the EVM's own
    block.
    """
    own: BlockEnvironment = machine.block
    config = _view(machine.state, machine.schedule, own).config
    spacing = config.block_time_ms // 1000
    parent = replace(
        own,
        number=max(own.number - 1, 0),
        timestamp=max(own.timestamp - spacing, 0),
        l1_number=max(own.l1_number - 1, 0),
    )
    view = _view(machine.state, machine.schedule, parent)
    hashes = machine.block_hashes or (_parent_hash(machine),)
    return replace(
        view,
        block_hash=hashes[0],
        ancestors=tuple(hashes[1:]),
        next_block=BlockOverrides(
            number=own.number or None,
            time=own.timestamp or None,
            gas_limit=own.gas_limit,
            fee_recipient=own.coinbase,
            prev_randao=own.prev_randao.to_bytes(32, "big"),
            base_fee_per_gas=own.base_fee,
            blob_base_fee=own.blob_base_fee,
            difficulty=own.difficulty,
        ),
    )


def environment_of_machine(state: Any) -> BlockEnvironment:
    """Returns the block of an EVM, or the default block of a Layer."""
    found = getattr(state, "block", None)
    return found if isinstance(found, BlockEnvironment) else BARE_BLOCK


def _view(layer: Layer, fork: str | ForkSchedule, block: BlockEnvironment) -> StateView:
    """Returns the view of a state after a block with this environment."""
    if isinstance(fork, str):
        activations = Activations.always(fork)
    else:
        activations = Activations.always(fork.fork, blobs=fork.blobs)
    schedule = activations.at(block.number, block.timestamp, after_merge=None)
    merged = schedule.parameters["difficulty_is_randomness"]
    header = Header(
        number=block.number,
        timestamp=block.timestamp,
        gas_limit=block.gas_limit,
        coinbase=block.coinbase,
        difficulty=0 if merged else block.difficulty,
        mix_hash=block.prev_randao.to_bytes(32, "big") if merged else ZERO_HASH,
        **era_fields(schedule, base_fee=block.base_fee),
    )
    version = int(schedule.parameters["arbos_version"])
    if version and block.l1_number:
        mix_hash = HeaderInfo(0, block.l1_number, version, collects_tips=False).mix_hash()
        header = replace(header, difficulty=DIFFICULTY, mix_hash=mix_hash)
    config = BareChain(chain_id=block.chain_id, activations=activations)
    return StateView(
        header=header,
        block_hash=header.hash,
        layer=layer,
        ancestors=(),
        schedule=schedule,
        config=config,
    )


def _parent_hash(machine: Any) -> bytes:
    """Returns the parent hash of an EVM's block if its remote state knows the hash, else zeros."""
    remote = machine.state.remote_state
    header = getattr(remote.source, "header", None) if remote is not None else None
    if header is None or int(header["number"], 16) != machine.block.number:
        return ZERO_HASH
    return bytes_of(header["parentHash"], "parentHash")


def era_fields(schedule: ForkSchedule, base_fee: int = 0) -> dict[str, Any]:
    """Returns the header fields that Frontier lacks, for an empty block. ``base_fee`` in wei."""
    fields = later_fields(schedule, {"base_fee_per_gas": base_fee})
    return fields | {"extra_data": next_extra_data(Header(), schedule)}


def view_running(state: Any, **block: Any) -> StateView:
    """Returns a view of a state on which the first simulated block has these fields."""
    given = {name: value for name, value in block.items() if value is not None}
    parent = {name: value for name, value in given.items() if name not in BLOCK_FIELDS}
    named = view_of(state, **given).header  # reads and checks the values
    if "number" in given:
        parent["number"] = max(named.number - 1, 0)
    if "timestamp" in given:
        parent["timestamp"] = max(named.timestamp - DEFAULT_BLOCK_TIME_MS // 1000, 0)
    view = view_of(state, **parent)
    fields: dict[str, Any] = {
        override: getattr(named, field)
        for name, (override, field) in BLOCK_FIELDS.items()
        if name in given
    }
    return replace(view, next_block=BlockOverrides(**fields))


def as_view(state: Any, **block: Any) -> StateView:
    """Returns the view for a simulation whose first block has the fields ``block``.

    - A StateView is returned unchanged.
    - An EVM runs its own block next.
    - For a Layer, ``block`` has fields of the block that runs. Missing fields follow from block 0
      of chain 1.

    ``block`` must be empty for a StateView and for an EVM, because these have their own block.
    Raises TypeError for an unknown name, and for an EVM with Python hooks or precompiles, which
    simulations do not call.
    """
    for name in block:
        if name not in BLOCK_OPTIONS:
            near = nearest(name, (*BLOCK_OPTIONS, *SIMULATION_OPTIONS))
            hint = f": did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"a simulation has no option {name!r}{hint}")
    is_machine = isinstance(getattr(state, "block", None), BlockEnvironment)
    if not is_machine and not isinstance(state, StateView):
        return view_running(state, **block)
    if block:
        owner = "an EVM" if is_machine else "a StateView"
        raise TypeError(f"{owner} knows its block: {', '.join(block)} cannot be given")
    if isinstance(state, StateView):
        return state
    for name in ("hooks", "precompiles"):
        if getattr(state, name, None):
            raise TypeError(
                f"simulations do not call the {name} of an EVM: use EVM.call or EVM.transact, or"
                f" simulate its state alone, as in simulate(evm.state, ...)"
            )
    return view_before(state)


def spacing_of(view: StateView) -> int:
    """Returns the block time of the view's chain in seconds, at least 1."""
    return max(int(view.config.block_time_ms) // 1000, 1)
