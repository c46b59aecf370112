"""Reads and writes every JSON format of the node."""
