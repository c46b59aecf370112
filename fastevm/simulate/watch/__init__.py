"""Watches: calls and bundles whose answers are kept up to date as the state changes."""
