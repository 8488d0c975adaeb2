"""Views of memory."""
