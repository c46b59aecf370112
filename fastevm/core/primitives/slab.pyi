"""Memory used by the records of persistent structures."""

def records_in_use() -> dict[str, int]:
    """Returns the number of ``records``, their size ``record_bytes``, and ``chunk_bytes`` of all
    chunks.
    """
