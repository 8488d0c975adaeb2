"""TensorBoard's entry point. TensorBoard imports this at every start, and a failing import would stop it.

So this imports the plugin's names and routes alone; what can fail or takes time is imported at the first request.
"""

from tensorboard.plugins import base_plugin

from .plugin import Plugin


class Loader(base_plugin.TBLoader):
    """Creates the plugin."""

    def load(self, context: base_plugin.TBContext) -> base_plugin.TBPlugin:
        """Return the plugin; nothing is read yet."""
        return Plugin(context)
