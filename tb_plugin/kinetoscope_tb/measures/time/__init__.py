"""Where time goes.

breakdown      what the time of a step went to, each instant counted once
exposure       communication and copies that no computation hides
idle           gaps of streams and devices, and why each lasted
queues         how much was launched and hadn't begun
duration_bins  histograms of durations
step_subset    a trace as if only some of its steps had been recorded
"""
