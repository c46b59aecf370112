"""Fork activation: which rules apply to which block of a chain."""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from fastevm.core.primitives.config_values import read_bytes, read_number
from fastevm.errors import UnknownForkError

from . import eips as e
from . import forks as f
from . import op_stack as op
from .blobs import BlobParameters, read_blob_schedule
from .eips import Eip
from .forks import Fork, fork_named, same_rules
from .parameters import Value
from .schedule import ForkSchedule, schedule_for


class BlockActivation(NamedTuple):
    """Activation at a block number, for forks before the merge."""

    number: int
    fork: Fork


class TimeActivation(NamedTuple):
    """Activation at a timestamp in seconds; ``blobs`` overrides the fork's blob parameters."""

    timestamp: int
    fork: Fork
    blobs: BlobParameters | None = None


class Activations:
    """The forks of one chain; immutable.

    - ``by_block``: (number, Fork) in ascending order; Frontier applies before the first number
    - ``by_time``: (timestamp, Fork, BlobParameters | None) in ascending order; each fork has
      complete rules
    - ``terminal_total_difficulty``: the merge happens when the total difficulty reaches it
    - ``merge_block``: the first block after the merge, if known
    - ``netsplit_block``: the virtual fork in the fork id (EIP-3675)
    - ``dao_block``: the block of the DAO's irregular balance moves
    - ``canyon_time`` and ``denim_time``: timestamps of Canyon (OP Stack) and Denim (Base)
    """

    __slots__ = (
        "_block_numbers",
        "_block_schedules",
        "_merged_schedules",
        "_timestamps",
        "by_block",
        "by_time",
        "canyon_time",
        "dao_block",
        "denim_time",
        "merge_block",
        "merge_fork",
        "netsplit_block",
        "terminal_total_difficulty",
    )

    def __init__(
        self,
        by_block: Iterable[tuple[int, Fork]] = (),
        by_time: Iterable[tuple[int, Fork] | tuple[int, Fork, BlobParameters | None]] = (),
        *,
        merge_block: int | None = None,
        terminal_total_difficulty: int | None = None,
        merge_fork: Fork = f.PARIS,
        netsplit_block: int | None = None,
        dao_block: int | None = None,
    ) -> None:
        blocks = [BlockActivation(*entry) for entry in by_block]
        if not blocks or blocks[0].number > 0:
            blocks.insert(0, BlockActivation(0, f.FRONTIER))
        self.by_block = tuple(blocks)
        self.by_time = tuple(TimeActivation(*entry) for entry in by_time)
        self.merge_block = merge_block
        self.merge_fork = merge_fork
        self.terminal_total_difficulty = terminal_total_difficulty
        self.netsplit_block = netsplit_block
        self.dao_block = _dao_block(self.by_block) if dao_block is None else dao_block
        self.canyon_time = _time_of(op.CANYON, self.by_time)
        self.denim_time = _time_of(op.DENIM, self.by_time)
        self._block_numbers = _ascending(a.number for a in self.by_block)
        self._timestamps = _ascending(a.timestamp for a in self.by_time)
        # Schedules with blobs are packed now to report invalid values; others are packed on first
        # use.
        self._block_schedules: list[ForkSchedule | None] = [None] * len(self.by_block)
        self._merged_schedules: list[ForkSchedule | None] = [None] * (1 + len(self.by_time))
        for index, item in enumerate(self.by_time):
            if item.blobs is not None:
                self._merged_schedule(index + 1)

    @classmethod
    def always(cls, fork: Fork | str, *, blobs: BlobParameters | None = None) -> "Activations":
        """Returns activations with one fork from the first block on."""
        fork = fork_named(fork) if isinstance(fork, str) else fork
        return cls(**_from_the_start(fork, blobs))

    @classmethod
    def from_genesis_config(cls, config: Mapping[str, Any]) -> "Activations":
        """Reads the ``config`` object of a genesis file in geth's format.

        A missing fork is activated together with the next fork that is present, or with the merge.
        A missing Petersburg is activated with Constantinople. The DAO fork (``daoForkSupport``) and
        the three glaciers are optional. With an ``optimism`` object (op-geth), the forks of the OP
        Stack apply. With a ``base`` object or keys of Base's forks, the forks of Base apply.

        Raises ValueError for forks out of order, for unknown keys that end in ``Time``, and for a
        blob fork without an entry in ``blobSchedule``.
        """
        if config.get("optimism") is not None:
            return cls(**_op_stack(config))
        blobs = read_blob_schedule(config.get("blobSchedule"))
        points = _points(config, _BLOCK_STEPS)
        blocks, tip = _compose(points, f.FRONTIER)
        _, tip = _compose(_implied_by_the_merge(points), tip)
        merge_fork = _advance(tip, f.PARIS, f.PARIS.eips)
        _check_known_times(config, {step.key for step in _TIME_STEPS})
        times, _ = _compose(_points(config, _TIME_STEPS), merge_fork)
        return cls(
            blocks,
            _with_blobs(times, blobs),
            merge_block=_optional(config, "mergeNetsplitBlock"),
            terminal_total_difficulty=_optional(config, "terminalTotalDifficulty"),
            merge_fork=merge_fork,
            netsplit_block=_optional(config, "mergeNetsplitBlock"),
            dao_block=_optional(config, "daoForkBlock") if config.get("daoForkSupport") else None,
        )

    def with_parameters(self, **values: Value) -> "Activations":
        """Returns activations that have these parameter values in every fork.

        Use them for chains that disable a rule. ``parameters.PARAMETERS`` lists the names.
        """
        change = Eip(
            0, "Parameters of one chain", parameters=values, name="parameters of the chain"
        )

        def changed(fork: Fork) -> Fork:
            return fork.then(fork.name, change, aliases=fork.aliases, config_key=fork.config_key)

        made = Activations(
            [(item.number, changed(item.fork)) for item in self.by_block],
            [(item.timestamp, changed(item.fork), item.blobs) for item in self.by_time],
            merge_block=self.merge_block,
            terminal_total_difficulty=self.terminal_total_difficulty,
            merge_fork=changed(self.merge_fork),
            netsplit_block=self.netsplit_block,
            dao_block=self.dao_block,
        )
        made.canyon_time = self.canyon_time
        made._merged_schedule(len(made.by_time))  # raises if a value is invalid
        return made

    def at(self, number: int, timestamp: int, *, after_merge: bool | None = None) -> ForkSchedule:
        """Returns the schedule of the block with this number and timestamp (seconds).

        ``after_merge``: whether the parent had reached the terminal total difficulty. If it is
        ``None`` (unknown), the block counts as merged in any of these cases: the terminal
        difficulty is 0; the block is ``merge_block`` or later; ``merge_block`` is unknown and a
        fork by timestamp is active. Forks by timestamp are never active before the merge.
        """
        if not (self._is_merged(number, timestamp) if after_merge is None else after_merge):
            index = bisect_right(self._block_numbers, number) - 1
            return self._block_schedules[index] or self._block_schedule(index)
        index = bisect_right(self._timestamps, timestamp)
        return self._merged_schedules[index] or self._merged_schedule(index)

    def _block_schedule(self, index: int) -> ForkSchedule:
        found = self._block_schedules[index] = schedule_for(self.by_block[index].fork)
        return found

    def _merged_schedule(self, index: int) -> ForkSchedule:
        """Returns the schedule of the merge (index 0) or of a later fork by timestamp."""
        if index:
            item = self.by_time[index - 1]
            found = schedule_for(item.fork, blobs=item.blobs)
        else:
            found = schedule_for(self.merge_fork)
        self._merged_schedules[index] = found
        return found

    @property
    def fork_blocks(self) -> tuple[int, ...]:
        """The distinct block numbers at which rules change, ascending, without 0 (EIP-2124)."""
        numbers = {a.number for a in self.by_block} | {self.netsplit_block or 0}
        return tuple(sorted(numbers - {0}))

    @property
    def fork_times(self) -> tuple[int, ...]:
        """The distinct timestamps at which rules change, ascending, without 0 (EIP-6122)."""
        return tuple(sorted({a.timestamp for a in self.by_time} - {0}))

    def _is_merged(self, number: int, timestamp: int) -> bool:
        if self.terminal_total_difficulty == 0:
            return True
        if self.merge_block is not None:
            return number >= self.merge_block
        return bool(self._timestamps) and timestamp >= self._timestamps[0]

    def __repr__(self) -> str:
        points = [*(f"{a.fork.name}@{a.number}" for a in self.by_block)]
        points += [f"{a.fork.name}@t{a.timestamp}" for a in self.by_time]
        return f"<Activations {' '.join(points)}>"


def activations_named(
    name: str, *, blob_schedule: Mapping[str, BlobParameters] | None = None
) -> Activations:
    """Returns the activations of a test network: a fork's name, or ``<A>To<B>At<X>``.

    X is a block number (``5``), ``Time`` and a timestamp (``Time15k``), or ``Diff`` and a terminal
    total difficulty in hex (``DiffC0000``). ``blob_schedule`` (by fork name in lower case, see
    ``read_blob_schedule``) overrides the blob parameters of the forks. It is the only source for
    blob forks after mainnet's last fork. Raises ``UnknownForkError`` for unknown names and
    ValueError for a blob fork without blob parameters.
    """
    schedule = blob_schedule or {}
    found = re.fullmatch(_TRANSITION, name)
    if found is None:
        fork = _network_fork(name)
        return Activations.always(fork, blobs=_blobs_of(fork, schedule))
    before, after = _network_fork(found["before"]), _network_fork(found["after"])
    start = _from_the_start(before, _blobs_of(before, schedule))
    number, time, thousand, difficulty = found.group("number", "time", "thousand", "difficulty")
    if number and not after.by_time and after is not f.PARIS:
        start["by_block"] = [*start["by_block"], (int(number), after)]
    elif time and after.by_time:
        at = int(time) * (1000 if thousand else 1)
        start["by_time"] = [*start["by_time"], (at, after, _blobs_of(after, schedule))]
    elif difficulty and after is f.PARIS:
        start["terminal_total_difficulty"] = int(difficulty, 16)
    else:
        raise UnknownForkError(f"unknown fork {name!r}: {after.name} is not activated in this way")
    return Activations(**start)


def _network_fork(name: str) -> Fork:
    """Returns a fork by name, including blob forks that mainnet does not have yet."""
    for fork in _BLOB_FORKS:
        if fork.name.casefold() == name.casefold():
            return fork
    return fork_named(name)


_TRANSITION = (
    r"(?P<before>\w+?)To(?P<after>\w+)At"
    r"(?:(?P<number>\d+)|Time(?P<time>\d+)(?P<thousand>k?)|Diff(?P<difficulty>[0-9A-Fa-f]+))"
)

# --- forks from the first block on ----------------------------------------------------------------


def _from_the_start(fork: Fork, blobs: BlobParameters | None) -> dict[str, Any]:
    if e.EIP_3675 not in fork.all_eips:
        return {"by_block": [(0, fork)], "by_time": []}
    merged: dict[str, Any] = {"terminal_total_difficulty": 0, "merge_block": 0, "by_time": []}
    merged["by_block"] = [(0, f.GRAY_GLACIER)]
    if fork.by_time:
        merged["by_time"] = [(0, fork, blobs)]
    else:
        merged["merge_fork"] = fork
    return merged


def _dao_block(activations: tuple[BlockActivation, ...]) -> int | None:
    return next((a.number for a in activations if a.number and e.EIP_779 in a.fork.eips), None)


def _time_of(eip: Eip, activations: tuple[TimeActivation, ...]) -> int | None:
    return next((a.timestamp for a in activations if eip in a.fork.all_eips), None)


def _ascending(points: Iterable[int]) -> list[int]:
    numbers = list(points)
    if numbers != sorted(numbers):
        raise ValueError(f"activation points must be in ascending order: {numbers}")
    return numbers


# --- genesis configurations -----------------------------------------------------------------------


class _Step(NamedTuple):
    """A key of the configuration, the EIPs that it activates, and the resulting fork."""

    key: str
    fork: Fork
    eips: tuple[Eip, ...]
    optional: bool = False


_SPURIOUS_SIGNATURES = f.TANGERINE_WHISTLE.then("ReplayProtection", e.EIP_155)
_GLACIERS = (f.MUIR_GLACIER, f.ARROW_GLACIER, f.GRAY_GLACIER)
_BLOB_FORKS = tuple(f.BPO2.then(f"BPO{n}", config_key=f"bpo{n}Time") for n in range(3, 6))

_AFTER_BPO2 = f.FORKS.index(f.BPO2) + 1

NETWORK_FORKS = (*f.FORKS[:_AFTER_BPO2], *_BLOB_FORKS, *f.FORKS[_AFTER_BPO2:])
"""The forks of test networks, in order."""


def _block_steps() -> Iterable[_Step]:
    for fork in f.FORKS:
        if fork is f.SPURIOUS_DRAGON:
            yield _Step("eip155Block", _SPURIOUS_SIGNATURES, (e.EIP_155,))
        if fork.config_key.endswith("Block"):
            eips = tuple(eip for eip in fork.eips if eip is not e.EIP_155)
            yield _Step(fork.config_key, fork, eips, fork in (f.DAO, *_GLACIERS))


_BLOCK_STEPS = tuple(_block_steps())
_TIME_STEPS = tuple(
    _Step(fork.config_key, fork, fork.eips, fork.name.startswith("BPO"))
    for fork in NETWORK_FORKS
    if fork.by_time
)


def _optional(config: Mapping[str, Any], key: str) -> int | None:
    value = config.get(key)
    return None if value is None else read_number(value, key)


def _points(config: Mapping[str, Any], steps: tuple[_Step, ...]) -> list[tuple[int, _Step]]:
    """Returns the activation of each step, in order; omits steps without activation."""
    given = {step.key: _optional(config, step.key) for step in steps}
    if given.get("petersburgBlock") is None and "petersburgBlock" in given:
        given["petersburgBlock"] = given["constantinopleBlock"]
    if not config.get("daoForkSupport"):
        given["daoForkBlock"] = None
    points: list[tuple[int, _Step]] = []
    later: tuple[int, _Step] | None = None
    for step in reversed(steps):
        at = given[step.key]
        if at is None:
            if step.optional or later is None:
                continue
            at = later[0]
        if later is not None and at > later[0]:
            raise ValueError(f"{step.key} {at} comes after {later[1].key} {later[0]}")
        later = (at, step)
        points.append(later)
    return points[::-1]


def _implied_by_the_merge(points: list[tuple[int, _Step]]) -> list[tuple[int, _Step]]:
    """Returns the steps by block number that a configuration merged at genesis may omit."""
    taken = {step.key for _, step in points}
    return [(0, s) for s in _BLOCK_STEPS if not s.optional and s.key not in taken]


def _compose(points: list[tuple[int, _Step]], fork: Fork) -> tuple[list[tuple[int, Fork]], Fork]:
    """Returns the fork after each point, and the last fork."""
    composed: dict[int, Fork] = {}
    for at, step in points:
        fork = composed[at] = _advance(fork, step.fork, step.eips)
    return list(composed.items()), fork


def _advance(current: Fork, fork: Fork, eips: tuple[Eip, ...]) -> Fork:
    """Returns the fork after applying a step to ``current``; ``fork`` itself if the rules are the
    same.
    """
    composed = current.then(fork.name, *eips, removing=fork.removed, config_key=fork.config_key)
    return fork if same_rules(composed, fork) else composed


def _blobs_of(fork: Fork, schedule: Mapping[str, BlobParameters]) -> BlobParameters | None:
    blobs = schedule.get(fork.name.casefold()) if e.EIP_4844 in fork.all_eips else None
    if blobs is None and fork.name in {unnamed.name for unnamed in _BLOB_FORKS}:
        raise ValueError(f"blobSchedule: {fork.name.casefold()} is missing")
    return blobs


def _with_blobs(
    times: Iterable[tuple[int, Fork]], schedule: Mapping[str, BlobParameters]
) -> list[tuple[int, Fork, BlobParameters | None]]:
    """Returns the forks with the blob schedule applied.

    Amsterdam keeps the values of its predecessor.
    """
    found: list[tuple[int, Fork, BlobParameters | None]] = []
    before: BlobParameters | None = None
    for at, fork in times:
        blobs = _blobs_of(fork, schedule)
        if blobs is None and fork.name == f.AMSTERDAM.name:
            blobs = before
        before = blobs
        found.append((at, fork, blobs))
    return found


def _check_known_times(config: Mapping[str, Any], known: Collection[str]) -> None:
    for key, value in config.items():
        if key.endswith("Time") and value is not None and key not in known:
            raise UnknownForkError(f"{key}: unknown fork")


# --- the OP stack ---------------------------------------------------------------------------------

# Ethereum's forks in the configuration -> the OP-stack forks that include them.
_INCLUDED = {
    "shanghaiTime": "canyonTime",
    "cancunTime": "ecotoneTime",
    "pragueTime": "isthmusTime",
    "osakaTime": "karstTime",
}
# key of Base's configuration: the account that may activate features of native tokens
_ADMIN_KEY = "activationAdminAddress"
_IRRELEVANT = ("pectraBlobScheduleTime",)  # a setting of the batcher, not an execution rule


def _op_stack(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns arguments of :class:`Activations` for a configuration with an ``optimism`` object."""
    config = _with_base_times(config)
    before, canyon = _fee_constants(config["optimism"])
    base = any(config.get(fork.config_key) is not None for fork in f.BASE_FORKS)
    last = f.BASE_FORKS if base else (f.KARST, f.LAGOON)
    steps = [_Step(fork.config_key, fork, fork.eips) for fork in (*f.OP_FORKS[1:-1], *last)]
    steps = [s._replace(eips=(*s.eips, canyon)) if s.fork is f.CANYON else s for s in steps]
    if config.get(_ADMIN_KEY) is not None:
        admin = op.activation_admin(read_bytes(config[_ADMIN_KEY], _ADMIN_KEY, 20))
        steps = [s._replace(eips=(*s.eips, admin)) if s.fork is f.BERYL else s for s in steps]
    keys = {step.key for step in steps}
    _check_known_times(config, {*keys, *_INCLUDED, *_IRRELEVANT})
    for key, including in _INCLUDED.items():
        at, expected = _optional(config, key), _optional(config, including)
        if at is not None and including in keys and at != expected:
            raise ValueError(f"{key}: expected {including} {expected}, found {at}")
    merge_fork = _advance(f.PARIS, f.BEDROCK, (*f.BEDROCK.eips, before))
    times, _ = _compose(_points(config, tuple(steps)), merge_fork)
    # these block numbers are part of the fork id
    blocks, _ = _compose(_points(config, _BLOCK_STEPS), f.FRONTIER)
    return {
        "by_block": blocks or [(0, f.GRAY_GLACIER)],
        "by_time": [(at, fork) for at, fork in times],
        "merge_block": 0,
        "terminal_total_difficulty": 0,
        "merge_fork": merge_fork,
    }


def _with_base_times(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the configuration with the fork times of its ``base`` object under fastevm's keys."""
    base = config.get("base")
    if base is None:
        return config
    if not isinstance(base, Mapping):
        raise ValueError("base: expected an object")
    admin = {key: base[key] for key in (_ADMIN_KEY,) if key in base}
    times = {f"{name}Time": value for name, value in base.items() if name != _ADMIN_KEY}
    for key, value in {**times, **admin}.items():
        if config.get(key, value) != value:
            raise ValueError(f"{key}: expected {value} as in base, found {config[key]}")
    return {**config, **times, **admin}


def _fee_constants(optimism: Any) -> tuple[Eip, Eip]:
    """Returns the chain's EIP-1559 constants before Canyon and since Canyon."""
    if not isinstance(optimism, Mapping):
        raise ValueError("optimism: expected an object")
    defaults = {
        "eip1559Elasticity": op.ELASTICITY_MULTIPLIER,
        "eip1559Denominator": op.BASE_FEE_CHANGE_DENOMINATOR,
        "eip1559DenominatorCanyon": op.BASE_FEE_CHANGE_DENOMINATOR_CANYON,
    }
    found = {name: _optional(optimism, name) for name in defaults}
    for name, value in found.items():
        if value == 0:
            raise ValueError(f"optimism.{name}: expected at least 1, found 0")
    elasticity, denominator, canyon = (found[name] or defaults[name] for name in defaults)
    return op.fee_constants(elasticity, denominator), op.fee_constants(elasticity, canyon)


MAINNET = Activations(
    [
        (0, f.FRONTIER),
        (1_150_000, f.HOMESTEAD),
        (1_920_000, f.DAO),
        (2_463_000, f.TANGERINE_WHISTLE),
        (2_675_000, f.SPURIOUS_DRAGON),
        (4_370_000, f.BYZANTIUM),
        (7_280_000, f.PETERSBURG),
        (9_069_000, f.ISTANBUL),
        (9_200_000, f.MUIR_GLACIER),
        (12_244_000, f.BERLIN),
        (12_965_000, f.LONDON),
        (13_773_000, f.ARROW_GLACIER),
        (15_050_000, f.GRAY_GLACIER),
    ],
    [
        (1_681_338_455, f.SHANGHAI),
        (1_710_338_135, f.CANCUN),
        (1_746_612_311, f.PRAGUE),
        (1_764_798_551, f.OSAKA),
        (1_765_290_071, f.BPO1),
        (1_767_747_671, f.BPO2),
    ],
    merge_block=15_537_394,
    terminal_total_difficulty=58_750_000_000_000_000_000_000,
)
"""Ethereum's mainnet. Constantinople and Petersburg were activated in the same block."""
