# Types of merge_records.
from typing import Final

RECORD_SIZE: Final[int]

def merge_records(left: bytes, right: bytes) -> tuple[bytes, int, int]: ...
