"""Native contracts of clients. Unlike precompiles, they read and write state."""
