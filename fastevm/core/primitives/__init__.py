"""What every package stands on: words, hashes, tables and maps."""
