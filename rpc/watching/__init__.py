"""``fastevm_watch``: answers to subscribers' calls, updated with every slice."""
