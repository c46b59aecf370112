"""Python access to C functions and machines, only for tests."""
