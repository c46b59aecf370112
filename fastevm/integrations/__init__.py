"""Backends for other libraries; each module requires its library."""
