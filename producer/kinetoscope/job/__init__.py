"""Who records: the rank, the job's shared store, the run's name, and which ranks are selected."""
