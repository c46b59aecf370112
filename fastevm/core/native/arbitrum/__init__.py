"""The precompiles of Arbitrum (ArbOS)."""
