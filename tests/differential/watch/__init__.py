"""Watched calls compared with full executions, on random chains."""
