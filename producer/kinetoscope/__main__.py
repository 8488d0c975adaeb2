"""`python -m kinetoscope`: the command line, which is the viewer's."""

import runpy
import sys
from importlib.util import find_spec

if find_spec("kinetoscope_tb") is None:
    sys.exit("The command line comes with the viewer: pip install kinetoscope")
runpy.run_module("kinetoscope_tb", run_name="__main__", alter_sys=True)
