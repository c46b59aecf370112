"""The parameters of BN254."""

U: int
GROUP_ORDER: int
CUBE_ROOT: int
EIGENVALUE: int
LATTICE: tuple[tuple[int, int], tuple[int, int]]

def signed_digits(n: int, width: int = 2) -> list[int]: ...
