"""Sockets: HTTP, WebSocket and the feed."""
