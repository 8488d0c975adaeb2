"""Which rank or link is slow, beyond what noise explains.

step_times        each rank's steps: own work and waiting
stragglers        slow ranks, and who waits for them
collective_waits  who came last to each collective
last_rank         who came last how often, from few steps
links             groups and pairs that move the same data more slowly
uneven_inputs     what one rank has more to do than others
statistics        how much noise explains
"""
