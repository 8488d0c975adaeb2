"""The plugin as TensorBoard sees it: a name, a tab, routes."""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from tensorboard.plugins import base_plugin

from .web.routes import MODULE_OF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .web.app import Site

logger = logging.getLogger(__name__)


class Plugin(base_plugin.TBPlugin):
    """Shows PyTorch profiler traces; what shows them is imported at the first request."""

    plugin_name = "pytorch_profiler"

    def __init__(self, context: base_plugin.TBContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._site: Site | None = None
        self._rename_predecessor()

    def get_plugin_apps(self) -> dict[str, Callable[..., Any]]:
        """The routes below data/plugin/pytorch_profiler."""
        self._rename_predecessor()
        return {route: partial(self._answer, route) for route in MODULE_OF}

    def is_active(self) -> bool:
        """Whether there is a trace, a problem or a running job; True before the first listing is done."""
        return self._site_of_logdirs().has_something_to_show()

    def _answer(self, route: str, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        answer: Iterable[bytes] = self._site_of_logdirs().applications[route](environ, start_response)
        return answer

    def _site_of_logdirs(self) -> Site:
        """What answers requests, which come in several threads: made once."""
        with self._lock:
            if self._site is None:
                from .web.app import Site  # 0.4 s with Polars, which TensorBoard's start must not wait for

                flags = self._context.flags
                spec, host = getattr(flags, "logdir_spec", None), getattr(flags, "host", None)
                self._site = Site.of_flags(self._context.logdir, spec, host)
            return self._site

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
