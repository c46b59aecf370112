"""Storage on disk: journals of blocks, slices and pooled transactions, an archive, snapshots."""

from fastevm.chain.storage.archive import Archive
from fastevm.chain.storage.data_directory import DataDirectory, Fsync
from fastevm.chain.storage.record_file import StorageError
from fastevm.chain.storage.scratch import ScratchBlocks

__all__ = ["Archive", "DataDirectory", "Fsync", "ScratchBlocks", "StorageError"]
