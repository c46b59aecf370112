"""The curve bn254 (alt_bn128): field, tower, curve, pairing and the three contracts."""
