"""Slices by text (text_query), by exact values (predicates), by a view's row (its own file).

`search` puts them together.
"""
