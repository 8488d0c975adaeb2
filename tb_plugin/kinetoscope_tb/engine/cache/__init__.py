"""Traces that were read before, in the user's cache folder: the next look at one takes a moment.

folder      where entries lie, which there are, which must go
columns     columns as bytes, in a form whose every length is checked
values      the JSON in it, checked too
trace_entry one trace as one file
timeline_entry, summary_entry   likewise a timeline, and what views of many ranks need
pack        summaries of many recordings as one file, beside them
orders      whether arrays have the order that compiled functions rely on
version     changes whenever the code that makes traces does

An entry is found by its trace's path, its stamp (what changes when the file does) and the version. It is written under
another name and then renamed, so it is whole or not there, whoever is killed when; checksums tell what a disk lost.
Nobody depends on an entry: whatever is wrong with one, the trace is read anew. There are no locks.
"""

from .folder import Cache, CachedTrace, configured, is_worth_caching, may_cache

__all__ = ["Cache", "CachedTrace", "configured", "is_worth_caching", "may_cache"]
