"""What a process writes down while it runs, who reads it, and what is recovered from it after a crash."""
