"""Compares random Amsterdam blocks on fastevm with a second implementation of the rules."""
