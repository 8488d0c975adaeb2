"""A file as text: decompressed, in UTF-8, with events.

source      a file in blocks of text, whatever compresses it
gunzip      gzip, also damaged
encodings   texts that aren't UTF-8
speedscope  speedscope's files as events
document    the JSON around the events
"""
