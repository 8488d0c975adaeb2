"""Sorted rows → the frames of `trace/model.py`.

build          all of one file: kinds, one time axis, threads, links, frames, diagnostics
event_frames   the frames, column by column
threads        (pid, tid) pairs and their names
metadata       the values outside the event array, checked
begin_end      ranges written as a begin and an end event
ascend         torch_npu's traces
uncategorized  rows of devices without a category
anomalies      odd texts, impossible numbers
"""
