"""How much memory the records of persistent structures take."""

def records_in_use() -> dict[str, int]:
    """Records of this process: ``records``, ``record_bytes``, ``chunk_bytes`` (used or not)."""
