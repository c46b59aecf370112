"""Base's native contracts in Python: the registries, the factory and the B20 tokens of three forks.

The contracts are written from their specification, without fastevm's code. Storage accesses, checks
and logs follow the order in the specification, because the order determines gas and errors.
"""
