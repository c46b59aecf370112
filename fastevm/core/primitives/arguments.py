"""Types of command-line arguments that several commands share."""

import argparse


def count(text: str) -> int:
    """Parses a number of at least one."""
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"invalid value {text!r}: expected a number >= 1")
    return int(text)
