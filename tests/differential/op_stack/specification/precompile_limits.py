"""The largest allowed input in bytes of each precompile that the OP stack limits.

Source: granite, isthmus, jovian and karst/exec-engine, "Precompile Restrictions".
"""

from .forks import Fork

PAIRING, G1_MSM, G2_MSM, BLS_PAIRING = 0x08, 0x0C, 0x0E, 0x0F
LIMITS = {
    PAIRING: {Fork.GRANITE: 112_687, Fork.JOVIAN: 81_984, Fork.KARST: 57_600},
    G1_MSM: {Fork.ISTHMUS: 513_760, Fork.JOVIAN: 288_960},
    G2_MSM: {Fork.ISTHMUS: 488_448, Fork.JOVIAN: 278_784},
    BLS_PAIRING: {Fork.ISTHMUS: 235_008, Fork.JOVIAN: 156_672},
}


def limit_of(address: int, fork: Fork) -> int | None:
    """Returns the largest input of a precompile in a fork, or None if it is not limited."""
    limits = [limit for since, limit in LIMITS.get(address, {}).items() if since <= fork]
    return limits[-1] if limits else None
