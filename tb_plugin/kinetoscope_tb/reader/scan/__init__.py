"""Text of events → sorted rows of codes and numbers.

ingest       blocks of text → sorted events, with scanning threads
chunk        one chunk of text: scanned, repaired, sorted
scanner      the scanner itself         columns   which keys it reads; arrays that grow
tokens       JSON tokens as texts and numbers   kinds     categories of every era → kinds of events
rows         events sorted into frames          counters  counters of the file
damage       kinds of damage, and their text    repair    damaged places → events
strict_json  events and values as strict JSON
"""
