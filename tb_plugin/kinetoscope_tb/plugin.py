"""The plugin as TensorBoard sees it: a name, a tab, routes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from tensorboard.plugins import base_plugin

from .discovery import parse_logdirs
from .discovery.jobs import has_job
from .engine.cache import configured
from .engine.engine import Engine
from .web.access import WriteAccess
from .web.app import routes

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)


class Plugin(base_plugin.TBPlugin):
    """Shows PyTorch profiler traces; the constructor only stores the logdirs."""

    plugin_name = "pytorch_profiler"

    def __init__(self, context: base_plugin.TBContext) -> None:
        self._context = context
        logdirs = parse_logdirs(context.logdir, getattr(context.flags, "logdir_spec", None))
        self._engine = Engine(logdirs, cache=configured())
        self._access = WriteAccess.configured(getattr(context.flags, "host", None))
        self._rename_predecessor()

    def get_plugin_apps(self) -> dict[str, Callable[..., Any]]:
        """The routes below data/plugin/pytorch_profiler."""
        self._rename_predecessor()
        return routes(self._engine, self._access)

    def is_active(self) -> bool:
        """Whether there is a trace, a problem or a running job; True before the first listing is done."""
        return self._engine.has_something_to_show() or has_job(self._engine.logdirs)

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """One JavaScript module in its own frame."""
        return base_plugin.FrontendMetadata(es_module_path="/static/index.js", tab_name="PYTORCH_PROFILER")

    def _rename_predecessor(self) -> None:
        """Rename torch-tb-profiler if it is installed too.

        It has our plugin name, and TensorBoard refuses to start with duplicate names. TensorBoard passes each plugin
        those loaded before it, and after all are loaded it requests the routes of each in turn, reading its name just
        before. So one of these two moments comes before it reads the other plugin's name, whichever was loaded first.
        """
        others = self._context.plugin_name_to_instance or {}
        other = others.get(self.plugin_name)
        if other is None or other is self:
            return
        other.plugin_name = "torch_tb_profiler"
        logger.warning("torch-tb-profiler is installed too: its tab is now TORCH_TB_PROFILER.")
