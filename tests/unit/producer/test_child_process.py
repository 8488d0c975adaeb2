import subprocess
import sys

LEAVES = """
import os, subprocess, sys
from kinetoscope.child_process import detach, detached_processes

reads, _ = os.pipe()  # the other end is closed when this process is gone
ended = subprocess.Popen([sys.executable, "-S", "-c", ""])
detach(ended)
ended.wait()
detach(subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=reads, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
print(len(detached_processes), detached_processes[0].poll())
"""


def test_a_detached_process_causes_no_warning_at_exit():
    done = subprocess.run([sys.executable, "-X", "dev", "-c", LEAVES], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("1 None\n", "")
