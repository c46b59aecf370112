"""Serves HTTP, WebSocket, IPC and the feed."""
