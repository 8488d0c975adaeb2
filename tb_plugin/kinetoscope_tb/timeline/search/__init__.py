"""Slices by text (text_query), by exact values (predicates), by a view's row (its own file), in an area (area).

`search` puts the first three together.
"""
