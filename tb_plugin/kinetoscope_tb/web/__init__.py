"""Requests to answers."""
