"""What outlives the process: journals of blocks, slices and waiting transactions in a directory."""

from fastevm.chain.storage.archive import Archive
from fastevm.chain.storage.directory import DataDirectory, Fsync
from fastevm.chain.storage.framed import StorageError
from fastevm.chain.storage.scratch import ScratchBlocks

__all__ = ["Archive", "DataDirectory", "Fsync", "ScratchBlocks", "StorageError"]
