"""A JSON-RPC client: blocking, on an event loop, and over a WebSocket."""
