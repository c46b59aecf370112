"""Proof of work: Ethash, difficulty and block rewards."""
