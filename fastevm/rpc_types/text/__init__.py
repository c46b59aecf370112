"""Characters of JSON: hexadecimal, a reader and a writer without the GIL."""
