"""Python access to C functions and machines, for tests only."""
