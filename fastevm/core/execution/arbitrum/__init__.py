"""Differences between Arbitrum and Ethereum in headers, data fees and transaction types."""
