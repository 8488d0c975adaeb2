"""Pickles of plain values, without unpickling: nothing is imported, called or built.

machine  opcodes → flat arrays, by a compiled function
plain    flat arrays → objects of Python, for small files
"""
