"""What outlives the process: journals of blocks, slices and waiting transactions in a directory."""

from fastevm.storage.archive import Archive
from fastevm.storage.data_directory import DataDirectory, Fsync
from fastevm.storage.record_file import StorageError
from fastevm.storage.scratch import ScratchBlocks

__all__ = ["Archive", "DataDirectory", "Fsync", "ScratchBlocks", "StorageError"]
