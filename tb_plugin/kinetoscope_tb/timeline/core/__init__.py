"""What is drawn.

model    tracks, rows, slices, labels            build          trace → timeline
tracks   threads and streams of a trace          lanes          rows in which no two slices overlap
pyramid  levels of detail, and tiles of them     tile_encoding  tiles as bytes
activity how busy devices and host were over the whole recording
"""
