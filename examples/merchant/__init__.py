"""A shop that takes EIP-3009 authorizations. Start it with `python -m examples.merchant`."""
