"""Base's native contracts in Python: the registries, the factory and the B20 tokens of three forks.

The contracts are written from their description, without the product. Every storage access, check
and log is in the order of the rules.
"""
