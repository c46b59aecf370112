"""What outlives the process: journals of blocks, slices and waiting transactions in a directory."""

from fastevm.chain.storage.directory import DataDirectory, Fsync
from fastevm.chain.storage.framed import StorageError

__all__ = ["DataDirectory", "Fsync", "StorageError"]
