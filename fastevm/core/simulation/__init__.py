"""Executes simulated chains: plans are the input, records and refusals the output."""
