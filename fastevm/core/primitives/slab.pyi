"""Memory used by the records of persistent structures."""

def records_in_use() -> dict[str, int]:
    """Returns the number of ``records``, their ``record_bytes``, and all ``chunk_bytes``."""
