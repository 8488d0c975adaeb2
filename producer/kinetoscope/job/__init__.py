"""The job: this process's rank, the shared store, the run's name, and the selected ranks."""
