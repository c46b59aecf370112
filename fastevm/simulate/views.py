"""From whatever a caller holds to the view that is simulated on: a layer, an EVM or a view."""

from dataclasses import dataclass
from typing import Any, Final

from fastevm.execution.fees import next_extra_data
from fastevm.simulate.values import DEFAULT_GAS_CAP, StateView
from fastevm.spec.activation import Activations
from fastevm.spec.schedule import ForkSchedule
from fastevm.state.layer import Layer
from fastevm.types import EMPTY_ROOT, ZERO_ADDRESS, ZERO_HASH, Header

DEFAULT_FORK: Final = "osaka"
DEFAULT_CHAIN_ID: Final = 1
DEFAULT_GAS_LIMIT: Final = DEFAULT_GAS_CAP  # no call is cut short then
DEFAULT_BLOCK_TIME_MS: Final = 12_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BareChain:
    """The constants of a chain that is nothing but a state.

    Without ``has_system_contracts`` the protocol's own contracts may be missing: blocks then have
    no withdrawal and consolidation requests.
    """

    chain_id: int
    activations: Activations
    deposit_contract: bytes = ZERO_ADDRESS
    block_time_ms: int = DEFAULT_BLOCK_TIME_MS
    has_system_contracts: bool = False


def view_of(
    state: Any,
    *,
    fork: str = DEFAULT_FORK,
    chain_id: int = DEFAULT_CHAIN_ID,
    number: int = 0,
    timestamp: int = 0,
    gas_limit: int = DEFAULT_GAS_LIMIT,
    base_fee: int = 0,
) -> StateView:
    """A view of a state alone: it stands for block ``number`` of a chain that knows one fork.

    ``state``: a Layer, or anything whose ``state`` is one (an EVM); ``timestamp`` in seconds,
    ``base_fee`` in wei. UnknownForkError for a fork that nobody knows, TypeError for no state.
    """
    layer = getattr(state, "state", state)
    if not isinstance(layer, Layer):
        raise TypeError(f"expected a Layer, an EVM or a StateView, found {type(state).__name__}")
    activations = Activations.always(fork)
    schedule = activations.at(number, timestamp, after_merge=None)
    header = Header(
        number=number,
        timestamp=timestamp,
        gas_limit=gas_limit,
        base_fee_per_gas=base_fee if schedule.parameters["has_base_fee"] else None,
        **era_fields(schedule),
    )
    config = BareChain(chain_id=chain_id, activations=activations)
    return StateView(
        header=header,
        block_hash=header.hash,
        layer=layer,
        ancestors=(),
        schedule=schedule,
        config=config,
    )


def era_fields(schedule: ForkSchedule) -> dict[str, Any]:
    """The later fields of an empty header under these rules."""
    rules = schedule.parameters
    has_blobs = bool(rules["has_blobs"])
    return {
        "withdrawals_root": EMPTY_ROOT if rules["has_withdrawals"] else None,
        "extra_data": next_extra_data(Header(), schedule),
        "blob_gas_used": 0 if has_blobs else None,
        "excess_blob_gas": 0 if has_blobs else None,
        "parent_beacon_block_root": ZERO_HASH if rules["has_beacon_root"] else None,
        "requests_hash": ZERO_HASH if rules["has_requests"] else None,
    }


def as_view(state: Any, **block: Any) -> StateView:
    """A StateView as it is, or one of a state alone; see ``view_of``.

    ``block`` must be empty for a StateView, which knows its block itself.
    """
    if not isinstance(state, StateView):
        return view_of(state, **block)
    if block:
        raise TypeError(f"a StateView knows its block: {', '.join(block)} cannot be given")
    return state


def spacing_of(view: StateView) -> int:
    """Seconds from one block of the view's chain to the next, at least one."""
    return max(int(view.config.block_time_ms) // 1000, 1)
