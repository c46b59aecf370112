"""Watches: calls and bundles whose answers are updated when the state changes."""
