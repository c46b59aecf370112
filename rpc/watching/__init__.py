"""``fastevm_watch``: updates the answers to subscribers' calls with every slice."""
