"""The report in a frame of a notebook."""

from __future__ import annotations

import html
from dataclasses import dataclass, field

from ..names.text import file_size

HEIGHT = 720  # pixels


@dataclass(frozen=True)
class Report:
    """The page and its answers in one piece of HTML, which needs neither a server nor a network.

    A notebook shows it in a frame that may run the page's own script and nothing else: it can't read the notebook.

    Args:
        title: Which recording it is of.
        content: Its HTML, as `kinetoscope report` writes it.
    """

    title: str
    content: str = field(repr=False)

    @property
    def size(self) -> str:
        """How much it adds to the notebook's file, in words."""
        return file_size(len(self._frame.encode()))

    @property
    def _frame(self) -> str:
        """The frame: of an origin of its own, since it isn't allowed that of the notebook."""
        return (
            f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{html.escape(self.content)}" '
            f'title="{html.escape(self.title)}" style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'
        )

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002
        """The frame with its size, as IPython asks for it."""
        words = f"The report of {self.title}: {self.size} in this notebook."
        return {"text/plain": words, "text/html": f"{self._frame}<p>{html.escape(words)}</p>"}
