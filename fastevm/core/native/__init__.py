"""Contracts that clients implement: they read and write state, unlike precompiles."""
