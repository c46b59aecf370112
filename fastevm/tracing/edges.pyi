"""Records the edges that execution takes in each code: pairs of a jump's pc and the next pc."""

from fastevm.tracing.profile import Profile

class EdgeProfile(Profile):
    def branches(self, creates: bool) -> dict[bytes, list[tuple[int, int]]]:
        """Returns address -> sorted edges of its code, or of its init code."""
