"""What TensorBoard asks of every plugin at its start, and that it starts beside torch-tb-profiler."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from types import SimpleNamespace

import pytest
from tensorboard.backend.application import TensorBoardWSGIApp
from tensorboard.plugins import base_plugin
from werkzeug.test import Client

from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.loader import Loader
from kinetoscope_tb.plugin import Plugin
from kinetoscope_tb.web.app import Applications
from kinetoscope_tb.web.routes import MODULE_OF


def context(logdir="/nowhere", **options):
    return base_plugin.TBContext(logdir=logdir, flags=SimpleNamespace(logdir=logdir, logdir_spec=""), **options)


@pytest.mark.parametrize("statement", ["import kinetoscope_tb.loader", "import kinetoscope_tb.plugin"])
def test_starting_tensorboard_imports_nothing_that_is_slow(statement):
    code = f"import sys; {statement}; print(*{{'polars', 'numpy', 'torch', 'isal', 'rich'}} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []


@pytest.mark.parametrize(
    ("arguments", "slow"),
    [
        (["--help"], {"numpy", "polars", "torch", "tensorboard"}),
        (["--version"], {"numpy", "polars", "torch", "tensorboard"}),
        (["demo", "--help"], {"numpy", "polars", "torch", "tensorboard"}),
        (["view", "--help"], {"torch", "tensorboard"}),
        (
            ["view", "kernels", "--help"],
            {"torch", "tensorboard", "kinetoscope_tb.advice", "kinetoscope_tb.distributed"},
        ),
    ],
)
def test_help_imports_nothing_that_is_slow(arguments, slow):
    code = "import sys\nfrom kinetoscope_tb.cli import main\n"
    code += f"try: main({arguments})\nfinally: print('LOADED', *{slow} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip().endswith("LOADED")


def test_making_the_plugin_touches_no_disk_and_starts_nothing(monkeypatch):
    for name in ("scandir", "listdir", "stat", "open"):
        monkeypatch.setattr(os, name, lambda *args, **kwargs: pytest.fail("touched the disk"))
    before = threading.active_count()
    Plugin(context())
    assert threading.active_count() == before


def test_tensorboard_hears_of_every_route():
    applications = Applications(Engine(()))
    assert set(Plugin(context()).get_plugin_apps()) == set(applications)
    assert all(callable(application) for application in applications.values())
    for module in set(MODULE_OF.values()):
        listed = getattr(import_module(f"kinetoscope_tb.web.{module}"), "ROUTES", {})
        assert {route for route in listed if MODULE_OF.get(route) != module} == set()


def test_requests_that_come_together_make_one_site(tmp_path):
    plugin = Plugin(context(str(tmp_path)))
    with ThreadPoolExecutor(4) as threads:
        sites = list(threads.map(lambda _: plugin._site_of_logdirs(), range(4)))
    assert len(set(map(id, sites))) == 1


def test_the_loader_makes_the_plugin():
    assert Loader().load(context()).plugin_name == "pytorch_profiler"


class Predecessor(base_plugin.TBPlugin):
    """Stands for torch-tb-profiler: the same name, other routes."""

    plugin_name = "pytorch_profiler"

    def get_plugin_apps(self):
        return {"/old": lambda environ, start: [b""]}

    def is_active(self):
        return True

    def frontend_metadata(self):
        return base_plugin.FrontendMetadata(es_module_path="/index.js")


@pytest.mark.parametrize("loaders", [[Predecessor, Loader], [Loader, Predecessor]], ids=["it first", "we first"])
def test_tensorboard_starts_with_torch_tb_profiler_installed_too(tmp_path, loaders):
    flags = SimpleNamespace(
        logdir=str(tmp_path), logdir_spec="", samples_per_plugin={}, window_title="", path_prefix="", reload_interval=0
    )
    provider = SimpleNamespace(list_plugins=lambda context, experiment_id: [])
    application = TensorBoardWSGIApp(flags, loaders, data_provider=provider)
    listed = Client(application).get("/data/plugins_listing").json
    assert set(listed) == {"pytorch_profiler", "torch_tb_profiler"}
    assert listed["pytorch_profiler"]["tab_name"] == "PYTORCH_PROFILER"
    assert "/data/plugin/pytorch_profiler/runs" in application.exact_routes
    assert "/data/plugin/torch_tb_profiler/old" in application.exact_routes
    assert Predecessor.plugin_name == "pytorch_profiler"  # only the instance was renamed
