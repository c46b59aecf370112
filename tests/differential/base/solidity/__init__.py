"""A token and a policy registry in Solidity, compared with Base's native contracts."""
