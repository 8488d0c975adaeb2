"""The cache on disk: traces that were read before open within a moment.

folder      the folder of entries: lookup, listing, eviction
private_folders   folders that only this user can write to
columns     columns as bytes, in a format whose every length is checked
values      the JSON in it, checked too
trace_entry one trace as one file
timeline_entry, summary_entry   the same for a timeline, and for a summary for views of many ranks
pack        summaries of many recordings as one file next to them
version     changes whenever the code that reads traces does

The key of an entry is its trace's path, its stamp (which changes with the file) and the version. An entry is written
under another name and then renamed, so it is complete or absent even if a process is killed; checksums detect
corruption on disk. Entries are expendable: if anything is wrong with one, the trace is read again. There are no locks.
"""

from .folder import Cache, CachedTrace, configured_cache, is_worth_caching, may_cache

__all__ = ["Cache", "CachedTrace", "configured_cache", "is_worth_caching", "may_cache"]
