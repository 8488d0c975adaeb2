"""TensorBoard's way in. TensorBoard imports this at every start, so it imports nothing of ours until it is asked to.

A module that fails to import here would stop TensorBoard; one that fails in `load` is reported and left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorboard.plugins import base_plugin

if TYPE_CHECKING:
    from .plugin import Plugin


class Loader(base_plugin.TBLoader):  # type: ignore[misc]  # TensorBoard has no types
    """Makes the plugin."""

    def load(self, context: base_plugin.TBContext) -> Plugin:
        """Return the plugin; nothing is read yet."""
        from .plugin import Plugin

        return Plugin(context)
