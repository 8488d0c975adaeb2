"""Collectives and transfers between ranks.

calls     calls of one trace
sizes     bytes that each moves
matching  which calls of different ranks are the same collective
waits     how long each rank waited, and how long the transfer took
traffic   bytes from each rank to each other
"""
