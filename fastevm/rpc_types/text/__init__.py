"""The characters of JSON: hexadecimal, and a reader and a writer that need no GIL."""
