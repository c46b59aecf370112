"""The lines of points of the second group that come again, as verifiers' keys do."""

CAPACITY: int
