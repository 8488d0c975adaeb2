"""torch-tb-profiler's recommendations: a line per path on standard input gives a line of JSON, a list of sentences."""

import json
import re
import sys
import tempfile
import warnings

from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.run_generator import RunGenerator

warnings.simplefilter("ignore")
for line in sys.stdin:
    try:
        data = RunProfileData.parse("worker0", "1", line.strip(), tempfile.mkdtemp())
        RunGenerator("worker0", "1", data).generate_run_profile()
        sentences = [re.sub("<[^>]*>", "", sentence) for sentence in data.recommendations]
    except Exception as error:  # noqa: BLE001 - foreign code, which one bad file must not end
        sentences = [f"error: {type(error).__name__}: {error}"]
    print(json.dumps(sentences), flush=True)
