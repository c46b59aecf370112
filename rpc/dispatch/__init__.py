"""Turns the bytes of a request into the bytes of its answer."""
