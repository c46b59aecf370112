"""Backends for other libraries. Each module requires its library."""
