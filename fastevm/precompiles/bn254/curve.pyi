"""The numbers that BN254 is made from."""

U: int
GROUP_ORDER: int

def signed_binary(n: int) -> list[int]: ...
