"""A benchmark that doesn't know the rules: simulated jobs whose cause is known, and a judge of the first answers."""
