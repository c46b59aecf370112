"""The JSON-RPC client of the project: blocking, on an event loop, and over a WebSocket."""
