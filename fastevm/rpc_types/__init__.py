"""JSON text to values and back: every wire format of the node."""
