"""The address of a page: printed, forwarded, opened in the browser."""

from __future__ import annotations

import getpass
import os
import sys
import webbrowser
from html import escape
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pathlib import Path

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # addresses to print, not to listen on
_OPENING = """<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}"><title>Kinetoscope</title><a href="{address}">Open the page</a>
"""


def authority_of(host: str, port: int) -> str:
    """The host and port of an address that a browser of this machine can open."""
    name = _ANY.get(host, host)
    return f"{f'[{name}]' if ':' in name else name}:{port}"


def print_address(address: str, authority: str, host: str, end_after: float | None) -> None:
    """Print how the page is reached, and how the server ends."""
    click.echo(f"\n  {address}\n")
    if connection := os.environ.get("SSH_CONNECTION"):
        click.echo(f"First, on your own machine: {_forward_command(authority, connection)}\n")
    if host not in _LOOPBACK:
        click.echo(
            f"Warning: everybody in the network can reach {host}. Only the address above opens the page, but "
            "those who can read the traffic, which isn't encrypted, can read it, too.",
            err=True,
        )
    after = "" if end_after is None else f", or {end_after:.0f} s after the page was closed"
    click.echo(f"The server ends with Ctrl-C{after}.")
    sys.stdout.flush()


def _forward_command(authority: str, connection: str) -> str:
    """The command that forwards the port; `connection` has both ends of ssh's connection, as sshd writes them."""
    _, _, server, ssh_port = connection.split() if connection.count(" ") == 3 else ("", "", "HOST", "22")
    option = "" if ssh_port == "22" else f" -p {ssh_port}"
    return f"ssh -N{option} -L {authority.rpartition(':')[2]}:{authority} {_user()}@{server}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a user without a name, as in some containers
        return "USER"


def can_open_browser() -> bool:
    """Whether a browser of this machine would be in front of the user, and doesn't run in the terminal."""
    if os.environ.get("SSH_CONNECTION"):
        return False
    has_screen = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    return has_screen or sys.platform in ("darwin", "win32")


def open_browser(address: str, file: Path) -> None:
    """Open the address by a private file: all users of a machine can read the arguments of a browser's process.

    Args:
        address: The address.
        file: Where the file is written, in a folder that only this user can open.
    """
    file.write_text(_OPENING.format(address=escape(address)), encoding="utf-8")
    webbrowser.open(file.as_uri())
