"""Subscriptions and polled filters."""
