"""Blocks on several threads against the same blocks on one."""
