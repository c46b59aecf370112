"""Runs independent bundles on one state, on threads or other machines; results as columns."""
