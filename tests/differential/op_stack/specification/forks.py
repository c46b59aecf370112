"""The forks of the OP stack, and the Ethereum fork that each one executes."""

from enum import IntEnum, auto


class Fork(IntEnum):
    """Forks in order of activation. Delta changes derivation alone and is left out.

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
        """The name as people write it."""
        return self.name.capitalize()

    @property
    def evm(self) -> str:
        """The module of the executable specification whose instructions hold."""
        base = [name for fork, name in EVM_BASES if fork <= self]
        return base[-1]

    @staticmethod
    def named(title: str) -> "Fork":
        """The fork of a title; Delta is Canyon to an executor."""
        return Fork.CANYON if title == "Delta" else Fork[title.upper()]


EVM_BASES = (
    (Fork.BEDROCK, "paris"),
    (Fork.CANYON, "shanghai"),
    (Fork.ECOTONE, "cancun"),
    (Fork.ISTHMUS, "prague"),
    (Fork.KARST, "osaka"),
)
