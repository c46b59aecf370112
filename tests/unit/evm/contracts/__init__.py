"""Tests contracts as Python objects."""
