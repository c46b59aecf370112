"""One transaction: encodings, validation, senders and execution."""
