"""Caches the Miller-loop lines of recurring points of the second group."""

CAPACITY: int
