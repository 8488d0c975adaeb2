"""The page as a widget: what it asks goes to the kernel as messages, never over the network.

The page is in a frame with an origin of its own, not in the notebook's document: it has a style, keys and an address of
its own, and nothing in it can read the notebook. JupyterLab, VS Code, Colab and marimo all show frames with `srcdoc`,
while none of them lets a page reach a port of the kernel's machine for sure. The kernel answers a message while it
handles it, since marimo sends from no other thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

Answer = Callable[[Mapping[str, Any]], tuple[dict[str, Any], bytes]]

HEIGHT = 720  # pixels


class PageWidget(anywidget.AnyWidget):
    """The page of a recording. It is alive as long as the kernel; later, and on GitHub, the first screen stays.

    Args:
        answer: What answers the page's messages, with head and content.
        title: Which recording it is of.
        height: Pixels.
        still: Text and HTML for programs without widgets, by media type.
    """

    _esm = Path(__file__).with_name("widget.js").read_text(encoding="utf-8")
    title = traitlets.Unicode().tag(sync=True)
    height = traitlets.Int().tag(sync=True)

    def __init__(self, answer: Answer, title: str, height: int, still: Mapping[str, str]) -> None:
        super().__init__(title=title, height=height)
        self._answer, self._still = answer, still
        self.on_msg(self._receive)

    def _receive(self, _widget: object, message: Mapping[str, Any], _buffers: object) -> None:
        head, content = self._answer(message)
        self.send({"id": message.get("id"), **head}, [content])

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget, and the first screen for programs that show none."""
        data, metadata = super()._repr_mimebundle_(**options)
        return {**data, **self._still}, metadata
