"""Views of servers: their iterations and phases."""
