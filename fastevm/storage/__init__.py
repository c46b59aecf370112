"""What outlives the process: journals of blocks, slices and waiting transactions in a directory."""

from fastevm.storage.archive import Archive
from fastevm.storage.directory import DataDirectory, Fsync
from fastevm.storage.framed import StorageError
from fastevm.storage.scratch import ScratchBlocks

__all__ = ["Archive", "DataDirectory", "Fsync", "ScratchBlocks", "StorageError"]
