"""Base's native contracts in Python: the registries, the factory and the B20 tokens of three forks.

Written from the description of the contracts, without the product. It favours the order of the
description over speed: every storage access, check and log stands where the rules put it.
"""
