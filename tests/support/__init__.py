"""What the tests share: builders of traces, oracles, servers, and what waits for processes."""
