"""The executor of simulated chains, and what it takes and gives: plans, records, refusals."""
