"""Example programs. Start each one from the root of the repository."""
