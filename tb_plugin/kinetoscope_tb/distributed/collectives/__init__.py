"""Collectives and transfers between ranks.

calls     of one recording, one row each
sizes     how many bytes each moves
matching  which calls of different ranks are the same collective
waits     how long each rank waited, and how long the transfer took
traffic   bytes from each rank to each other
"""
