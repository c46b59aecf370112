"""Native contracts of clients: unlike precompiles, they read and write state."""
