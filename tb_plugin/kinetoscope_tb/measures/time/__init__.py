"""Where time goes.

breakdown      the time of a step by category, each instant counted once
exposure       communication and copies that no computation hides
graph_breaks   the time between the compiled graphs of a frame
idle           gaps of streams and devices, and their causes
host_time      what the host spends its steps on where no device was recorded
queues         launched work that hasn't begun
duration_bins  histograms of durations
step_subset    a trace restricted to some of its steps
"""
