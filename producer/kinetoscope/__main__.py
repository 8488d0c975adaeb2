"""`python -m kinetoscope`: `run` records a program; the other commands are the viewer's."""

import runpy
import sys
from importlib.util import find_spec

if sys.argv[1:2] == ["run"]:
    from kinetoscope.integrations.program import main

    main(sys.argv[2:])
elif find_spec("kinetoscope_tb") is None:
    sys.exit("All commands but `run` come with the viewer: pip install kinetoscope")
else:
    runpy.run_module("kinetoscope_tb", run_name="__main__", alter_sys=True)
