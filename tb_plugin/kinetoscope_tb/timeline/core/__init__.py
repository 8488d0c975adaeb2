"""The timeline's data: tracks, slices and levels of detail.

model    tracks, rows, slices, labels; how busy devices and host were over the whole recording
tracks   threads and streams of a trace
build    trace → timeline, with lanes in which no two slices overlap
pyramid  levels of detail, and tiles of them
"""
