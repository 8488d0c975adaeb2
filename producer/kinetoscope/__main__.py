"""`python -m kinetoscope`: the command line, which is the viewer's."""

import runpy

runpy.run_module("kinetoscope_tb", run_name="__main__", alter_sys=True)
