"""Memory used by the records of persistent structures."""

def records_in_use() -> dict[str, int]:
    """Returns ``records``, ``record_bytes`` and ``chunk_bytes`` (used or not) of this process."""
