"""What Arbitrum chains change in blocks and transactions."""
