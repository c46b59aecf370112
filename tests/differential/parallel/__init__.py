"""Compares blocks on several threads with the same blocks on one thread."""
