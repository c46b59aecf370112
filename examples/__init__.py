"""Example programs; start each from the root of the repository."""
