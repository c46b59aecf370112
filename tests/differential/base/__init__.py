"""Compares Base's native contracts with a second implementation, written from the specification."""
