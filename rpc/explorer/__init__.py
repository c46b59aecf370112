"""The explorer: a web page that shows a node's blocks, and the server code for it."""
