"""Executes simulated chains. Plans are the input; records and refusals are the output."""
