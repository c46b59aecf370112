"""Branches that each code takes: pairs of the pc of a jump and the pc after it."""

from fastevm.tracing.profile import Profile

class EdgeProfile(Profile):
    def branches(self, creates: bool) -> dict[bytes, list[tuple[int, int]]]:
        """Returns address -> sorted edges of its code, or of its init code."""
