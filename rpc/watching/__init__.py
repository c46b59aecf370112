"""``fastevm_watch``: questions of subscribers whose answers stay fresh with every slice."""
