"""Memory snapshots of torch's allocators (`torch.cuda.memory._dump_snapshot`) → the snapshot's frames of a trace.

ingest        the pickle, or base64 in a page of memory_viz → records, in one compiled pass
word_columns  fields of records, in as little memory as they need
decoder       words of the pickle → numbers, rows of texts and stacks
columns       records → frames
"""
