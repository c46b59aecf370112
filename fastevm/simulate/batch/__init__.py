"""Runs many independent bundles on one state: threads, columns, other machines and capsules."""
