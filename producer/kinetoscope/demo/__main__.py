"""`python -m kinetoscope.demo`: a recorded training."""

from . import main

main()
