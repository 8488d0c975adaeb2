"""The journal that a process writes while it runs, its readers, and recovery after a crash."""
