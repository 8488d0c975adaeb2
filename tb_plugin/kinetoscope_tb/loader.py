"""TensorBoard's way in. TensorBoard imports this at every start, so it imports nothing of ours until it is asked to.

A module that fails to import here would stop TensorBoard; one that fails in `load` is reported and left out.
"""

from tensorboard.plugins import base_plugin


class Loader(base_plugin.TBLoader):
    """Makes the plugin."""

    def load(self, context: base_plugin.TBContext) -> base_plugin.TBPlugin:
        """Return the plugin; nothing is read yet."""
        from .plugin import Plugin

        return Plugin(context)
