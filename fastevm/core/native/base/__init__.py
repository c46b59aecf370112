"""Base's native contracts: tokens (B20), their factory, policies and feature switches."""
