"""Compares the results of a `Watch` with full executions, on random chains."""
