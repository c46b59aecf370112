"""Compares Base's native contracts with a token and a policy registry written in Solidity."""
