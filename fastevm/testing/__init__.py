"""What only tests need: C functions and whole machines behind Python functions."""
