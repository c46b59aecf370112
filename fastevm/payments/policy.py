"""The merchant's policy: confirmation depth, fees, waiting times and limits."""

from typing import Final, NamedTuple

from msgspec import Struct

from fastevm.payments.arguments import check_members, checked
from fastevm.payments.errors import InvalidTerms

GWEI: Final = 10**9
LEAST_BUMP_PERCENT: Final = 10  # nodes require a replacement to raise both fees by this
OP_STACK_TIP: Final = 1_000_000  # wei per gas; OP-stack nodes suggest it if blocks are not full
TAGS: Final = ("safe", "finalized")
MOST_BATCH: Final = 100  # captures in one transaction
BATCH_GAS: Final = 8_000_000  # gas limit of a batch; about half of Osaka's limit per transaction


class Exposure(NamedTuple):
    """Limits on the sum of all orders that are authorized or captured but not paid.

    In token units. None means no limit.
    """

    most: int | None = None
    most_per_payer: int | None = None


@checked
class Policy(Struct, frozen=True, kw_only=True):
    """A merchant's settings. Times are in seconds, fees in wei per gas, sums in token units.

    - ``depth``: confirmations after which a captured payment counts as paid, or the node's tag
      ``safe`` or ``finalized``. The payment's own block is the first confirmation.
    - ``first_block``: the block from which a new store reads logs. By default the last ``overlap``
      blocks up to the head.
    - ``overlap``: blocks that every later scan rereads.
    - ``range_blocks``: blocks per ``eth_getLogs`` request.
    - ``poll``: the shortest pause between polls.
    - ``scan_every``: the pause between passes while no transaction is open.
    - ``capture_in``: a capture that would expire within this time after the pending block is
      refused. The default is the observed inclusion time (see `InclusionTimes`).
    - ``forced_gas``: the gas estimate of a forced capture for which the node has no estimate.
    - ``gas_margin_percent``: added to gas estimates.
    - ``tip``: a fixed tip. By default the recent median, at least ``least_tip`` and at most
      ``most_tip``.
    - ``base_fee_factor`` and ``most_fee``: the fee cap is this factor times the base fee plus the
      tip, at most ``most_fee``.
    - ``bump_blocks``, ``bump_least``, ``bump_after``: a transaction is replaced after
      ``bump_blocks`` blocks and ``bump_least`` seconds without inclusion, or after ``bump_after``
      seconds if given.
    - ``bump_percent`` and ``most_bumps``: a replacement raises both fees by ``bump_percent``, and a
      call is replaced at most ``most_bumps`` times.
    - ``most_per_order``, ``most_per_day`` (captures in a UTC day), ``most_exposure`` (the sum of
      unpaid orders, see `Exposure`) and ``most_exposure_per_payer`` are limits. None means no
      limit.
    - ``batch``: the maximum number of captures of `Merchant.capture_many` in a transaction, within
      ``MOST_BATCH`` and ``BATCH_GAS``. 1 disables batches. See `fastevm.payments.batches`.
    """

    depth: int | str = 1
    overlap: int = 64
    first_block: int | None = None
    range_blocks: int = 2_000
    capture_in: int | None = None
    poll: float = 0.2
    scan_every: float = 2.0
    tip: int | None = None
    least_tip: int = OP_STACK_TIP
    most_tip: int = 100 * GWEI
    base_fee_factor: int = 2
    most_fee: int = 500 * GWEI
    gas_margin_percent: int = 20
    forced_gas: int = 150_000
    bump_after: float | None = None
    bump_blocks: int = 5
    bump_least: float = 3.0
    bump_percent: int = 13
    most_bumps: int = 8
    most_per_order: int | None = None
    most_per_day: int | None = None
    most_exposure: int | None = None
    most_exposure_per_payer: int | None = None
    batch: int = 1

    def __post_init__(self) -> None:
        check_members(self)
        if self.depth not in TAGS and (isinstance(self.depth, str) or self.depth < 1):
            raise InvalidTerms(f"depth: expected 1 or more, or {TAGS}, found {self.depth!r}")
        for name in ("overlap", "range_blocks", "base_fee_factor", "bump_blocks"):
            if getattr(self, name) < 1:
                raise InvalidTerms(f"{name}: expected 1 or more, found {getattr(self, name)}")
        if not 1 <= self.batch <= MOST_BATCH:
            raise InvalidTerms(f"batch: expected 1 to {MOST_BATCH}, found {self.batch}")
        if self.bump_percent < LEAST_BUMP_PERCENT:
            raise InvalidTerms(f"bump_percent: expected {LEAST_BUMP_PERCENT} or more")

    @property
    def exposure(self) -> Exposure:
        """The limits on the sum of unpaid orders."""
        return Exposure(self.most_exposure, self.most_exposure_per_payer)

    def fees(self, base_fee: int, tip: int) -> tuple[int, int]:
        """Returns fee cap and tip of a new transaction.

        The policy's fixed tip, if set, replaces ``tip``.
        """
        if self.tip is not None:
            tip = self.tip
        cap = min(self.most_fee, self.base_fee_factor * base_fee + tip)
        return cap, min(tip, cap)

    def bumped(self, old: tuple[int, int], new: tuple[int, int]) -> tuple[int, int] | None:
        """Returns fee cap and tip of a replacement: the raised ``old`` fees, but at least ``new``.

        Returns None if the raised fee cap exceeds ``most_fee``.
        """
        raised = [fee + fee * self.bump_percent // 100 + 1 for fee in old]
        if raised[0] > self.most_fee:
            return None
        return max(new[0], raised[0]), max(new[1], raised[1])

    def gas_limit(self, estimate: int) -> int:
        """Returns the gas limit of a transaction: ``estimate`` plus the margin."""
        return estimate + estimate * self.gas_margin_percent // 100
