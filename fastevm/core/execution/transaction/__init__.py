"""One transaction: encodings, rules, senders and its execution."""
