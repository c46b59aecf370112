"""The explorer, a web page that shows a node's blocks, and its server code."""
