"""The timeline: every slice of a trace, ready to be drawn at any zoom.

model      what a timeline holds: tracks, rows, slices, labels
tracks     which threads and streams a trace has
building   trace → timeline
lanes      rows in which no two slices overlap
pyramid    levels of detail, and tiles of them
encoding   tiles as bytes
activity   how busy devices and host were over the whole
counters   what changes over time beside the slices: memory, how busy devices are, queues
area       what ran in some time on some tracks
finding    slices by words, by values, by rows of other views; from: words, wanted, view_slices
details    all of one slice; from: briefs, links, origins, arrows, alike, view_rows
export     a file for other viewers; from: nested and texts of events, arguments, arrows, counters
"""

from .activity import activity
from .building import timeline
from .model import CATEGORIES, FRAMES, Labels, Timeline, Track
from .pyramid import BUCKETS, Levels, Pyramid, Rows, Tile

__all__ = [
    "BUCKETS",
    "CATEGORIES",
    "FRAMES",
    "Labels",
    "Levels",
    "Pyramid",
    "Rows",
    "Tile",
    "Timeline",
    "Track",
    "activity",
    "timeline",
]
