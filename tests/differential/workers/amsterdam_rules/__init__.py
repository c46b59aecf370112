"""Implements the rules of Amsterdam over the last fork of the executable specification (EELS)."""
