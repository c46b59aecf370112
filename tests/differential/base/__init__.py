"""Base's native contracts, compared with a second implementation written from their description."""
