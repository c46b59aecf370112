"""Compares watched calls with full executions, on random chains."""
