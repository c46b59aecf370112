"""Tests of contracts as Python objects."""
