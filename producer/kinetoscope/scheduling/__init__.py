"""Which steps are recorded: by the schedule, or on request, which all ranks agree on."""
