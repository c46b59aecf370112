"""secp256k1 signatures: recovers one signer, or many at a time."""
