# Types of storage.pyx.
STATE_ADDRESS: bytes
ARBITRUM_PRECOMPILES: frozenset[bytes]

def slot(ids: tuple[bytes, ...], key: int) -> int: ...
