"""The explorer: a page that watches a node in a browser, and what serves it."""
