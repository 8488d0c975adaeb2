"""TensorBoard's entry point. TensorBoard imports this at every start, so it imports nothing of ours until `load`.

A failing import here would stop TensorBoard; one in `load` is reported, and the plugin left out.
"""

from tensorboard.plugins import base_plugin


class Loader(base_plugin.TBLoader):
    """Creates the plugin."""

    def load(self, context: base_plugin.TBContext) -> base_plugin.TBPlugin:
        """Return the plugin; nothing is read yet."""
        from .plugin import Plugin

        return Plugin(context)
