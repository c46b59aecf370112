"""What is kept on the disk: journals of blocks, slices and pooled transactions, an archive."""

from fastevm.storage.archive import Archive
from fastevm.storage.data_directory import DataDirectory, Fsync
from fastevm.storage.record_file import StorageError
from fastevm.storage.scratch import ScratchBlocks

__all__ = ["Archive", "DataDirectory", "Fsync", "ScratchBlocks", "StorageError"]
