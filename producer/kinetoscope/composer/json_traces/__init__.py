"""JSONTraceHandler: Chrome JSON per rank and window, and one file for all ranks of a machine."""
