"""Compares parallel execution of blocks with serial execution."""
