"""Blocks on several threads: Block-STM, and execution by block access lists (EIP-7928)."""
