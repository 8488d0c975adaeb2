"""First views of a trace: where the steps' time went, what to do, how it was recorded."""
