"""From the profiler's raw file to a trace in the run's folder: the spool, the writer process, and `run.json`."""
