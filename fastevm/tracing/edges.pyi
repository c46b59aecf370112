"""Records the edges that execution takes in each code. An edge is a jump's pc and the next pc."""

from fastevm.tracing.profile import Profile

class EdgeProfile(Profile):
    def branches(self, creates: bool) -> dict[bytes, list[tuple[int, int]]]:
        """Returns the sorted edges of an account's code, or of its init code, by address."""
