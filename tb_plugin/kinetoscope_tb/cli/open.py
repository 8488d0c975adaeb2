"""`kinetoscope open`: the page in the browser, without TensorBoard."""

from __future__ import annotations

import gc
import signal
import sys
from contextlib import contextmanager, suppress
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from ..discovery import list_paths, logdirs_of
from ..docstrings import docstring
from ..engine.workers import Workers
from ..errors import BadParameter
from ..filesystem import is_url, last_part
from ..web.access import configured_hosts
from ..web.standalone.access import PageAccess
from ..web.standalone.application import PageApplication
from ..web.standalone.presence import Presence
from ..web.standalone.server import listen, serve
from ..web.standalone.uploads import Uploads
from .browser import authority_of, can_open_browser, open_browser, print_address
from .completion import PATH
from .options import where

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from ..discovery import Logdir
    from ..web.app import Site

STANDARD_INPUT = "-"
MOST_BYTES = 8 << 30
CLOSED_S = 90.0
_LEVELS = ("run", "worker", "span")


def _open(
    paths: Sequence[str],
    host: str,
    port: int,
    has_browser: bool,
    stays: bool,
    end_after: float,
    most_bytes: int,
    **names: str | None,
) -> None:
    """Open traces in the browser, without TensorBoard.

    PATH is a trace file, a logdir or a URL; `-` reads a trace from standard input. The page is for you alone: its
    address has a token. The server ends with Ctrl-C, or some time after you closed the page.
    """
    with _ends_like_ctrl_c(), suppress(KeyboardInterrupt), _private_folder() as folder:
        uploads = Uploads(folder, most_bytes)
        paths = [_saved_input(uploads) if path == STANDARD_INPUT else path for path in dict.fromkeys(paths)]
        logdirs, threads = logdirs_of(paths), Workers(2)
        site = threads.submit(_site, logdirs, host)
        recording = _recording(logdirs, paths, names)
        threads.submit(_prepare, site, recording, after=site)
        access, presence = PageAccess(configured_hosts(host)), Presence(end_after)
        title = f"{', '.join(map(last_part, paths))} · Kinetoscope"
        with listen(host, port) as listener:
            authority = authority_of(host, listener.getsockname()[1])
            address = f"http://{authority}{access.path}{_fragment(recording)}"
            print_address(address, authority, host, end_after=None if stays else end_after)
            if has_browser and can_open_browser():
                threads.submit(open_browser, address, uploads.path("open.html"))
            application = PageApplication(title, site, access, presence, uploads)
            serve(listener, application, (lambda: False) if stays else presence.is_over)
        click.echo("The page was closed; the server ends. --stay would keep it.")


def _private_folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="kinetoscope-open-", ignore_cleanup_errors=True)


def _site(logdirs: Sequence[Logdir], host: str) -> Site:
    gc.disable()  # hundreds of modules are imported, and nothing of them is garbage, now or later
    try:
        app = import_module("kinetoscope_tb.web.app")  # while the page is on its way to the browser
    finally:
        gc.freeze()
        gc.enable()
    site: Site = app.Site(logdirs, host)
    site.has_something_to_show()  # begins to list
    return site


def _prepare(site: Future[Site], recording: Mapping[str, str]) -> None:
    """Compute the first answers while the page is on its way to the browser."""
    if len(recording) == len(_LEVELS):  # else the page knows which it is, once there is a listing
        site.result().prepare(recording)


def _saved_input(uploads: Uploads) -> str:
    """The file that standard input is written to.

    Raises:
        BadParameter: It is a terminal, or empty.
        TooLarge: It is more than is accepted.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise BadParameter("Standard input is a terminal. Pipe a trace into it: … | kinetoscope open -")
    path = uploads.save(sys.stdin.buffer, "stdin", run="stdin")
    if not path.stat().st_size:
        raise BadParameter("Standard input is empty.")
    return str(path)


def _recording(logdirs: Sequence[Logdir], paths: Sequence[str], names: Mapping[str, str | None]) -> Mapping[str, str]:
    """The recording that opens, as far as it is known: `run`, `worker` and `span`.

    Raises:
        LogdirError: There is no such path, or no trace.
        NotFound: There is no such run, worker or span.
    """
    if any(map(is_url, paths)):  # listing it may take long, and the page lists it anyway
        return {level: name for level, name in names.items() if name is not None}
    file, _ = list_paths(logdirs, paths).newest(**names)
    return {level: getattr(file, level) for level in _LEVELS}


def _fragment(recording: Mapping[str, str]) -> str:
    """The part of the address that chooses the recording; without it, the page opens the newest run."""
    parts = [f"p.pytorch_profiler.{level}={quote(name, safe='')}" for level, name in recording.items()]
    return f"#{'&'.join(['pytorch_profiler', *parts])}"


@contextmanager
def _ends_like_ctrl_c() -> Iterator[None]:
    """SIGTERM, and SIGHUP of a terminal that is closed, end the block as Ctrl-C does, so that files are deleted."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        if before[number] is signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


open = click.Command(  # noqa: A001  # the name of the command
    "open",
    callback=_open,
    params=[
        click.Argument(["paths"], metavar="PATH…", nargs=-1, required=True, type=PATH),
        *where()[1:],
        click.Option(["--port"], type=click.IntRange(0, 65535), default=0, help="The port; by default a free one."),
        click.Option(
            ["--host"], default="127.0.0.1", show_default=True, help="The address to listen on; others can reach it."
        ),
        click.Option(["--browser/--no-browser", "has_browser"], default=True, help="Whether to open the browser."),
        click.Option(["--stay", "stays"], is_flag=True, help="Don't end when the page was closed."),
        click.Option(
            ["--end-after"],
            metavar="SECONDS",
            type=click.FloatRange(min=0),
            default=CLOSED_S,
            show_default=True,
            help="How long after the page was closed the server ends.",
        ),
        click.Option(
            ["--most-bytes"],
            metavar="BYTES",
            type=click.IntRange(min=1),
            default=MOST_BYTES,
            show_default=True,
            help="Limit of standard input, and of a file that is dropped onto the page.",
        ),
    ],
    help=docstring(_open),
)
