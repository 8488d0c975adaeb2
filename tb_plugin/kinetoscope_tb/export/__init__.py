"""Writes files for other tools.

chrome_json  a timeline, or a range of it, as Chrome's JSON
merge        the ranks of one span as one file, on one clock
repair       a damaged trace as strict JSON
stacks       call trees for flame graph viewers
publish      traces of other writers under the names of runs and workers

The page as one file, with its answers, is `web/report.py`: it needs the JSON of every answer.
"""
