"""The page in one piece of HTML, with its own script, which may run nothing else and contact no address."""

from __future__ import annotations

import hashlib
import html
from base64 import b64encode

from .assets import asset


def inline_page(title: str, *, head: str = "", body: str = "", preparation: str = "", description: str = "") -> str:
    """The HTML.

    Args:
        title: Its title, a text.
        head: Further elements of its head.
        body: Further elements of its body, before its scripts.
        preparation: A script of ours that runs before the page.
        description: What it shows, a text.
    """
    script = asset("index.js")[0].decode().replace("</script", "<\\/script").replace("<!--", "<\\!--")
    digests = " ".join(f"'sha256-{_digest(code)}'" for code in (preparation, script) if code)
    policy = f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; img-src data: blob:"
    first_script = f"<script>{preparation}</script>\n" if preparation else ""
    licenses = asset("licenses.txt")[0].decode().replace("--", "- -")
    return f"""<!doctype html>
<html lang="en" data-starts-itself>
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="{html.escape(description)}">
{head}<title>{html.escape(title)}</title>
</head>
<body>
<noscript>This page needs JavaScript. It contacts no other address.<p>{html.escape(description)}</p></noscript>
{body}{first_script}<script type="module">{script}</script>
<!--
{licenses}-->
</body>
</html>
"""


def _digest(script: str) -> str:
    return b64encode(hashlib.sha256(script.encode()).digest()).decode()
