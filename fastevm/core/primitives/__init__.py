"""Types and functions that all packages use: words, hashes, tables and maps."""
