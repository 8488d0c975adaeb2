"""`python -m kinetoscope`: `run` records a program, `selftest` tests a disk; the other commands are the viewer's."""

import runpy
import sys
from importlib.util import find_spec

if sys.argv[1:2] == ["run"]:
    from kinetoscope.integrations.program import main

    main(sys.argv[2:])
elif sys.argv[1:2] == ["selftest"]:
    from kinetoscope.selftest.command import main as selftest

    sys.exit(selftest(sys.argv[2:]))
elif find_spec("kinetoscope_tb") is None:
    sys.exit("All commands but `run` and `selftest` come with the viewer: pip install kinetoscope")
else:
    runpy.run_module("kinetoscope_tb", run_name="__main__", alter_sys=True)
