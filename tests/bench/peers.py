"""The same file through a peer, in a process of its own: `peers.py torch-tb-profiler|hta PATH`."""

import sys
import tempfile

peer, path = sys.argv[1:]
if peer == "torch-tb-profiler":
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.run_generator import RunGenerator

    data = RunProfileData.parse("worker0", "1", path, tempfile.mkdtemp())
    profile = RunGenerator("worker0", "1", data).generate_run_profile()
    print(len(profile.views), "views")
else:
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_files={0: path}, trace_dir=".")
    print(len(analysis.t.get_trace(0)), "rows")
