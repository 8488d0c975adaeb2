"""`python -m kinetoscope selftest DIR`: what of a recording survives on this machine and this disk."""
