"""A shop that takes EIP-3009 authorizations; `python -m examples.merchant` starts all of it."""
