"""Real traces, each read once in a process: many laws are held against the same ones."""

from functools import cache

from kinetoscope_tb.reader import read

read_once = cache(read)
