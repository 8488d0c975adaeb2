"""A file as text: decompressed (source, gunzip), in UTF-8 (encodings), and the JSON around the events (document)."""
