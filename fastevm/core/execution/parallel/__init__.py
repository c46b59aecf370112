"""Parallel execution of a block: Block-STM, and block access lists (EIP-7928). See README.md."""
