"""The routes below data/plugin/pytorch_profiler, by the module that answers them. This module imports none of them.

TensorBoard asks for all routes at its start, and the first answers need few of these modules.
"""

from __future__ import annotations

_ROUTES = {
    "app": ("/runs", "/views", "/state", "/view", "/answer", "/compare", "/history", "/event", "/*"),
    "why": ("/why",),
    "capture": ("/capture",),
    "timeline": ("/timeline", "/timeline/labels", "/timeline/tiles", "/timeline/counters"),
    "slices": ("/timeline/slice", "/timeline/find"),
    "rows": ("/timeline/row", "/timeline/row/ranks", "/timeline/row/advice"),
    "area": ("/timeline/area", "/timeline/area/flame", "/timeline/area/counters"),
    "paths": ("/timeline/path", "/timeline/path_across_ranks", "/timeline/path_shares"),
    "export": ("/timeline/export", "/timeline/export/size"),
    "perfetto": ("/timeline/perfetto", "/timeline/perfetto/*"),
    "contents": ("/static/*",),
}

MODULE_OF = {route: module for module, routes in _ROUTES.items() for route in routes}
