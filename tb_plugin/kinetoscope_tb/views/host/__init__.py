"""Views of the host: operators, modules, Python, launches."""
