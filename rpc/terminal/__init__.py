"""What a developer reads while the node runs: transactions, requests, call trees."""
