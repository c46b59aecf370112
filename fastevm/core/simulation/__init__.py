"""The executor of simulated chains with its input (plans) and output (records and refusals)."""
