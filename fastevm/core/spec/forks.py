"""The forks. Each fork is a parent plus a list of EIPs.

Code outside this folder does not compare forks: it reads prices, limits and flags from the packed
schedule.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

from msgspec import Struct

from fastevm.core.primitives.suggestion import nearest
from fastevm.errors import UnknownForkError

from . import amsterdam as a
from . import arbitrum as arb
from . import eips as e
from . import op_stack as op
from .blobs import BlobParameters
from .eips import Eip
from .parameters import PARAMETERS, Value


class Fork(Struct, frozen=True, eq=False):
    """A set of rules: those of the parent without ``removed``, plus ``eips``.

    Later EIPs take precedence.

    ``aliases`` are other names of the fork. ``config_key`` is its key in a geth genesis
    configuration. Forks compare by identity; ``same_rules`` compares their rules.
    """

    name: str
    parent: "Fork | None"
    eips: tuple[Eip, ...]
    removed: tuple[Eip, ...] = ()
    aliases: tuple[str, ...] = ()
    config_key: str = ""

    def then(
        self,
        name: str,
        *eips: Eip,
        removing: tuple[Eip, ...] = (),
        aliases: tuple[str, ...] = (),
        config_key: str = "",
    ) -> "Fork":
        """Returns a child of this fork."""
        return Fork(name, self, eips, removing, aliases, config_key)

    @property
    def all_eips(self) -> tuple[Eip, ...]:
        """The EIPs in force, oldest first, including the Yellow Paper's base set."""
        inherited = () if self.parent is None else self.parent.all_eips
        return tuple(eip for eip in inherited if eip not in self.removed) + self.eips

    @property
    def by_time(self) -> bool:
        """Whether a timestamp activates the fork, not a block number.

        True for all forks after the merge.
        """
        return self.config_key.endswith("Time")

    def __repr__(self) -> str:
        return f"<Fork {self.name}>"


@dataclass(frozen=True, slots=True)
class Rules:
    """The resolved rules of a fork: each name has the value of the last EIP that sets it.

    - ``opcodes``: mnemonic -> gas
    - ``parameters``: name -> value, for every parameter of ``PARAMETERS``
    - ``precompiles``: name -> address
    - ``contracts``: name -> address
    - ``sources``: (kind, name) -> the EIP that set the value; kind is the name of a field above
    """

    opcodes: Mapping[str, int]
    parameters: Mapping[str, Value]
    precompiles: Mapping[str, int]
    contracts: Mapping[str, bytes]
    sources: Mapping[tuple[str, str], Eip] = field(compare=False)


@lru_cache(maxsize=256)
def resolve(fork: Fork) -> Rules:
    """Resolves the rules of a fork from its EIPs."""
    opcodes: dict[str, int] = {}
    parameters: dict[str, Value] = {p.name: p.absent for p in PARAMETERS.values()}
    precompiles: dict[str, int] = {}
    contracts: dict[str, bytes] = {}
    sources: dict[tuple[str, str], Eip] = {}
    for eip in fork.all_eips:
        opcodes.update(eip.opcodes)
        parameters.update(eip.parameters)
        precompiles.update(eip.precompiles)
        contracts.update(eip.contracts)
        for kind in ("opcodes", "parameters", "precompiles", "contracts"):
            sources.update({(kind, name): eip for name in getattr(eip, kind)})
    return Rules(
        MappingProxyType(opcodes),
        MappingProxyType(parameters),
        MappingProxyType(precompiles),
        MappingProxyType(contracts),
        MappingProxyType(sources),
    )


def same_rules(a: Fork, b: Fork) -> bool:
    """Returns whether two forks have the same rules, regardless of names and history."""
    if a is b or [*map(id, _setting(a))] == [*map(id, _setting(b))]:
        return True  # avoids resolving both
    return resolve(a) == resolve(b)


def _setting(fork: Fork) -> list[Eip]:
    """Returns the EIPs of a fork that set a rule."""
    return [e for e in fork.all_eips if e.opcodes or e.parameters or e.precompiles or e.contracts]


@lru_cache(maxsize=256)
def default_blobs(fork: Fork) -> BlobParameters | None:
    """Returns the blob parameters that the fork's EIPs set, or ``None`` for a fork before blobs."""
    values = resolve(fork).parameters
    if not values["has_blobs"]:
        return None
    return BlobParameters(
        values["blob_target"], values["blob_max"], values["blob_base_fee_fraction"]
    )


FRONTIER = Fork("Frontier", None, (e.YELLOW_PAPER,))
HOMESTEAD = FRONTIER.then("Homestead", e.EIP_2, e.EIP_7, config_key="homesteadBlock")
DAO = HOMESTEAD.then("DAO", e.EIP_779, aliases=("DAOFork",), config_key="daoForkBlock")
TANGERINE_WHISTLE = DAO.then(
    "TangerineWhistle", e.EIP_150, aliases=("EIP150", "Tangerine"), config_key="eip150Block"
)
SPURIOUS_DRAGON = TANGERINE_WHISTLE.then(
    "SpuriousDragon",
    e.EIP_155,
    e.EIP_160,
    e.EIP_161,
    e.EIP_170,
    aliases=("EIP158", "Spurious"),
    config_key="eip158Block",
)
BYZANTIUM = SPURIOUS_DRAGON.then(
    "Byzantium",
    e.EIP_100,
    e.EIP_140,
    e.EIP_196,
    e.EIP_197,
    e.EIP_198,
    e.EIP_211,
    e.EIP_214,
    e.EIP_649,
    e.EIP_658,
    config_key="byzantiumBlock",
)
CONSTANTINOPLE = BYZANTIUM.then(
    "Constantinople",
    e.EIP_145,
    e.EIP_1014,
    e.EIP_1052,
    e.EIP_1234,
    e.EIP_1283,
    config_key="constantinopleBlock",
)
PETERSBURG = CONSTANTINOPLE.then(
    "Petersburg",
    removing=(e.EIP_1283,),
    aliases=("ConstantinopleFix", "St. Petersburg"),
    config_key="petersburgBlock",
)
ISTANBUL = PETERSBURG.then(
    "Istanbul",
    e.EIP_152,
    e.EIP_1108,
    e.EIP_1344,
    e.EIP_1884,
    e.EIP_2028,
    e.EIP_2200,
    config_key="istanbulBlock",
)
MUIR_GLACIER = ISTANBUL.then("MuirGlacier", e.EIP_2384, config_key="muirGlacierBlock")
BERLIN = MUIR_GLACIER.then(
    "Berlin", e.EIP_2565, e.EIP_2718, e.EIP_2929, e.EIP_2930, config_key="berlinBlock"
)
LONDON = BERLIN.then(
    "London",
    e.EIP_1559,
    e.EIP_3198,
    e.EIP_3529,
    e.EIP_3541,
    e.EIP_3554,
    config_key="londonBlock",
)
ARROW_GLACIER = LONDON.then("ArrowGlacier", e.EIP_4345, config_key="arrowGlacierBlock")
GRAY_GLACIER = ARROW_GLACIER.then("GrayGlacier", e.EIP_5133, config_key="grayGlacierBlock")
PARIS = GRAY_GLACIER.then(
    "Paris",
    e.EIP_3675,
    e.EIP_4399,
    aliases=("Merge", "TheMerge"),
    config_key="terminalTotalDifficulty",
)
SHANGHAI = PARIS.then(
    "Shanghai", e.EIP_3651, e.EIP_3855, e.EIP_3860, e.EIP_4895, config_key="shanghaiTime"
)
CANCUN = SHANGHAI.then(
    "Cancun",
    e.EIP_1153,
    e.EIP_4788,
    e.EIP_4844,
    e.EIP_5656,
    e.EIP_6780,
    e.EIP_7516,
    config_key="cancunTime",
)
PRAGUE = CANCUN.then(
    "Prague",
    e.EIP_2537,
    e.EIP_2935,
    e.EIP_6110,
    e.EIP_7002,
    e.EIP_7251,
    e.EIP_7623,
    e.EIP_7685,
    e.EIP_7691,
    e.EIP_7702,
    config_key="pragueTime",
)
OSAKA = PRAGUE.then(
    "Osaka",
    e.EIP_7594,
    e.EIP_7823,
    e.EIP_7825,
    e.EIP_7883,
    e.EIP_7892,
    e.EIP_7910,
    e.EIP_7918,
    e.EIP_7934,
    e.EIP_7939,
    e.EIP_7951,
    config_key="osakaTime",
)
BPO1 = OSAKA.then("BPO1", e.EIP_8134, config_key="bpo1Time")
BPO2 = BPO1.then("BPO2", e.EIP_8135, config_key="bpo2Time")
AMSTERDAM = BPO2.then(
    "Amsterdam",
    a.EIP_2780,
    a.EIP_7708,
    a.EIP_7778,
    a.EIP_7843,
    a.EIP_7928,
    a.EIP_7954,
    a.EIP_7976,
    a.EIP_7981,
    a.EIP_7997,
    a.EIP_8024,
    a.EIP_8037,
    a.EIP_8038,
    a.EIP_8246,
    a.EIP_8282,
    config_key="amsterdamTime",
)
AMSTERDAM_2026_04 = BPO2.then(
    "amsterdam-2026-04",
    a.EIP_7708,
    a.EIP_7778,
    a.EIP_7843,
    a.EIP_7928,
    a.EIP_7954,
    a.EIP_7976,
    a.EIP_7981,
    a.EIP_8024,
    a.EIP_8037,
    a.SNAPSHOT,
    config_key="amsterdamTime",
)
"""Amsterdam as of 2026-04-21, between two devnets. Public tests use it; no network runs it."""

# --- the OP stack ---------------------------------------------------------------------------------

BEDROCK = PARIS.then("Bedrock", op.BEDROCK, config_key="bedrockBlock")
REGOLITH = BEDROCK.then("Regolith", op.REGOLITH, config_key="regolithTime")
CANYON = REGOLITH.then("Canyon", *SHANGHAI.eips, op.CANYON, config_key="canyonTime")
DELTA = CANYON.then("Delta", op.DELTA, config_key="deltaTime")
ECOTONE = DELTA.then("Ecotone", *CANCUN.eips, op.ECOTONE, config_key="ecotoneTime")
FJORD = ECOTONE.then("Fjord", op.RIP_7212, op.FJORD, config_key="fjordTime")
GRANITE = FJORD.then("Granite", op.GRANITE, config_key="graniteTime")
HOLOCENE = GRANITE.then("Holocene", op.HOLOCENE, config_key="holoceneTime")
ISTHMUS = HOLOCENE.then(
    "Isthmus",
    e.EIP_2537,
    e.EIP_2935,
    e.EIP_7623,
    e.EIP_7685,
    e.EIP_7702,
    op.ISTHMUS,
    config_key="isthmusTime",
)
JOVIAN = ISTHMUS.then("Jovian", op.JOVIAN, config_key="jovianTime")
_OSAKA_ON_L2 = (e.EIP_7823, e.EIP_7825, e.EIP_7883, e.EIP_7910, e.EIP_7939, e.EIP_7951)
KARST = JOVIAN.then("Karst", *_OSAKA_ON_L2, op.KARST, config_key="karstTime")
LAGOON = KARST.then("Lagoon", op.LAGOON, config_key="lagoonTime")
AZUL = JOVIAN.then("Azul", *_OSAKA_ON_L2, op.AZUL, config_key="azulTime")
BERYL = AZUL.then("Beryl", op.BERYL, config_key="berylTime")
COBALT = BERYL.then("Cobalt", op.COBALT, config_key="cobaltTime")
DENIM = COBALT.then("Denim", op.DENIM, config_key="denimTime")

OP_FORKS: tuple[Fork, ...] = (
    BEDROCK,
    REGOLITH,
    CANYON,
    DELTA,
    ECOTONE,
    FJORD,
    GRANITE,
    HOLOCENE,
    ISTHMUS,
    JOVIAN,
    KARST,
)
"""The forks of OP Stack chains that are active on some chain, in order.

Base has ``BASE_FORKS`` in place of Karst. No chain has scheduled Lagoon yet.
"""

BASE_FORKS: tuple[Fork, ...] = (AZUL, BERYL, COBALT, DENIM)
"""The forks of Base after Jovian, in order."""

# --- Arbitrum -------------------------------------------------------------------------------------

_NITRO = PARIS.then("Nitro", arb.NITRO)
_SHANGHAI_ON_ARBITRUM = _NITRO.then("ArbOS11", e.EIP_3651, e.EIP_3855, e.EIP_3860)
_CANCUN_ON_ARBITRUM = _SHANGHAI_ON_ARBITRUM.then(
    "ArbOS20", e.EIP_1153, e.EIP_5656, e.EIP_6780, arb.BLOBHASH
)
_STYLUS = _CANCUN_ON_ARBITRUM.then("ArbOS30", arb.POINT_EVALUATION, arb.RIP_7212, arb.STYLUS)
_PRAGUE_ON_ARBITRUM = _STYLUS.then("ArbOS40", e.EIP_2935, e.EIP_7702)
_OSAKA_ON_ARBITRUM = _PRAGUE_ON_ARBITRUM.then(
    "ArbOS50", e.EIP_2537, e.EIP_7823, e.EIP_7883, e.EIP_7939, e.EIP_7951
)
# First version of ArbOS -> rules.
_ARBITRUM = {
    1: _NITRO,
    11: _SHANGHAI_ON_ARBITRUM,
    20: _CANCUN_ON_ARBITRUM,
    30: _STYLUS,
    40: _PRAGUE_ON_ARBITRUM,
    50: _OSAKA_ON_ARBITRUM,
}
NEWEST_ARBOS = 61


@lru_cache(maxsize=256)
def arbos_fork(version: int, has_calldata_floor: bool = False) -> Fork:
    """Returns the rules of an ArbOS version, at least 1.

    A version above `NEWEST_ARBOS` gets the rules of `NEWEST_ARBOS`. ``has_calldata_floor``: the
    owners of the chain have enabled EIP-7623.
    """
    number = min(version, NEWEST_ARBOS)
    base = _ARBITRUM[max(first for first in _ARBITRUM if first <= number)]
    floor = (e.EIP_7623,) if has_calldata_floor else ()
    return base.then(f"ArbOS{number}", arb.version(number), *floor)


ARBITRUM_FORKS: tuple[Fork, ...] = tuple(
    arbos_fork(version) for version in (6, 10, 11, 20, 30, 31, 32, 40, 41, 50, 51, 60, NEWEST_ARBOS)
)
"""The versions of ArbOS that Arbitrum's chains have used or that add methods, in order."""

FORKS: tuple[Fork, ...] = (
    FRONTIER,
    HOMESTEAD,
    DAO,
    TANGERINE_WHISTLE,
    SPURIOUS_DRAGON,
    BYZANTIUM,
    CONSTANTINOPLE,
    PETERSBURG,
    ISTANBUL,
    MUIR_GLACIER,
    BERLIN,
    LONDON,
    ARROW_GLACIER,
    GRAY_GLACIER,
    PARIS,
    SHANGHAI,
    CANCUN,
    PRAGUE,
    OSAKA,
    BPO1,
    BPO2,
    AMSTERDAM,
)
"""All forks of Ethereum's mainnet that this library knows, in order."""


def _key(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum())


_BY_KEY: dict[str, Fork] = {
    _key(name): fork
    for fork in (*FORKS, AMSTERDAM_2026_04, *OP_FORKS, *BASE_FORKS, LAGOON, *ARBITRUM_FORKS)
    for name in (fork.name, *fork.aliases)
}
_BY_KEY["latest"] = BPO2  # mainnet's newest fork


def fork_named(name: str) -> Fork:
    """Returns the fork with that name or alias; ignores case, spaces and punctuation.

    Raises ``UnknownForkError``, which suggests similar names, if there is none.
    """
    fork = _BY_KEY.get(name) or _BY_KEY.get(_key(name))
    if fork is not None:
        return fork
    near = nearest(_key(name), _BY_KEY, count=3, cutoff=0.7)
    names = list(dict.fromkeys(_BY_KEY[key].name for key in near))
    hint = (
        f"did you mean {' or '.join(names)}?"
        if names
        else f"known are {', '.join(f.name for f in FORKS)}"
    )
    raise UnknownForkError(f"unknown fork {name!r}: {hint}")
