"""The transaction pool: admission, ordering, replacement, eviction."""
