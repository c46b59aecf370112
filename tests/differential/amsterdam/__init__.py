"""Compares random blocks of Amsterdam on fastevm and on a Python transcription of the rules."""
