"""The timeline's data: tracks, slices and levels of detail.

model    tracks, rows, slices, labels            build          trace → timeline
tracks   threads and streams of a trace          lanes          rows in which no two slices overlap
pyramid  levels of detail, and tiles of them
activity how busy devices and host were over the whole recording
"""
