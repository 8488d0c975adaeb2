"""`python -m kinetoscope_tb`: the command line, where `kinetoscope` isn't on the path."""

from .cli import main

main()
