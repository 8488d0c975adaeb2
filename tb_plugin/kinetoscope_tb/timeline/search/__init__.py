"""Slices by text (search), by exact values (predicates), by a view's row (its own file).

`search` puts them together.
"""
