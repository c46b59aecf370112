# Types of the merging of sorted records.
from typing import Final

RECORD_SIZE: Final[int]

def merge_records(left: bytes, right: bytes) -> tuple[bytes, int, int]: ...
