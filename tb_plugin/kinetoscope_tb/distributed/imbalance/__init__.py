"""Which rank or link is slow, beyond what noise explains.

step_times  each rank's steps: own work and waiting
stragglers  slow ranks, and who waits for them
links       groups and pairs that move the same data more slowly
statistics  how much noise explains
"""
