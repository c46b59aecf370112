"""Elliptic-curve signatures: secp256k1, one recovery and many at once."""
