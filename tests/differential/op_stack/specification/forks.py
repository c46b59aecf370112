"""The forks of the OP stack, and the Ethereum fork whose opcodes each has."""

from enum import IntEnum, auto


class Fork(IntEnum):
    """Forks in order of activation. Delta is missing, because it only changes derivation.

    Source: the overview page of each fork.
    """

    BEDROCK = auto()
    REGOLITH = auto()
    CANYON = auto()
    ECOTONE = auto()
    FJORD = auto()
    GRANITE = auto()
    HOLOCENE = auto()
    ISTHMUS = auto()
    JOVIAN = auto()
    KARST = auto()

    @property
    def title(self) -> str:
        """Returns the name of the fork in the documentation."""
        return self.name.capitalize()

    @property
    def evm(self) -> str:
        """Returns the module of the executable specification that has the fork's opcodes."""
        base = [name for fork, name in EVM_BASES if fork <= self]
        return base[-1]

    @staticmethod
    def named(title: str) -> "Fork":
        """Returns the fork with this title. Delta counts as Canyon."""
        return Fork.CANYON if title == "Delta" else Fork[title.upper()]


EVM_BASES = (
    (Fork.BEDROCK, "paris"),
    (Fork.CANYON, "shanghai"),
    (Fork.ECOTONE, "cancun"),
    (Fork.ISTHMUS, "prague"),
    (Fork.KARST, "osaka"),
)
