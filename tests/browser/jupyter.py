"""A JupyterLab with a notebook, in a browser."""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from contract.running import server_process

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from playwright.sync_api import Page

NOTEBOOK = "profile.ipynb"
FOLDERS = {  # nothing of the user's own
    "HOME": "home",
    "IPYTHONDIR": "ipython",
    "JUPYTER_CONFIG_DIR": "config",
    "JUPYTER_DATA_DIR": "data",
    "JUPYTER_RUNTIME_DIR": "runtime",
    "JUPYTERLAB_SETTINGS_DIR": "settings",
    "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
}
NO_NEWS = {"fetchNews": "false", "checkForUpdates": False}  # else it asks jupyter.org
HAS_KERNEL = "() => globalThis.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel"
WITHIN_MS = 180_000
ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+/lab)\?token=")


@contextmanager
def jupyter_lab(folder: Path, cells: Sequence[str]) -> Iterator[str]:
    """The address of a notebook with these cells, in a JupyterLab at a free port of this machine."""
    import nbformat  # seconds, which each process of pytest would spend

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    (folder / "work").mkdir()
    nbformat.write(notebook, folder / "work" / NOTEBOOK)
    news = folder / "settings" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    news.parent.mkdir(parents=True)
    news.write_text(json.dumps(NO_NEWS))
    token = secrets.token_hex(16)
    options = ["--no-browser", "--allow-root", "--expose-app-in-browser", f"--IdentityProvider.token={token}"]
    options += ["--ServerApp.ip=127.0.0.1", "--ServerApp.port=0", f"--ServerApp.root_dir={folder / 'work'}"]
    variables = {name: str(folder / path) for name, path in FOLDERS.items()}
    command = [sys.executable, "-m", "jupyterlab", *options]
    with server_process(command, ADDRESS, env={**os.environ, **variables}) as (url, _process, _output):
        yield f"{url}/tree/{NOTEBOOK}?token={token}"


def run_all(page: Page, url: str) -> None:
    """Open the notebook and run its cells, once its kernel is there."""
    page.goto(url)
    page.wait_for_function(HAS_KERNEL, timeout=WITHIN_MS)
    page.evaluate("() => jupyterapp.commands.execute('notebook:run-all-cells')")
