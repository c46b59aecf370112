"""Compares Base's native contracts with a second implementation, written from their description."""
