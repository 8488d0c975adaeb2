"""The files of the page, which `pip install` built."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from ..errors import NotFound

STATIC = Path(__file__).parent.parent / "static"

_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".wasm": "application/wasm"}


def compressed_asset(name: str, folder: Path = STATIC) -> bytes | None:
    """A file of the folder as the build compressed it; None if it didn't, or if the file was built again since."""
    file, archive = folder / name, folder / f"{name}.gz"
    is_listed = archive in folder.rglob("*.gz") and file.is_file()
    return archive.read_bytes() if is_listed and archive.stat().st_mtime >= file.stat().st_mtime else None


def asset(name: str, folder: Path = STATIC) -> tuple[bytes, str]:
    """Content and media type of a file in the folder.

    Raises:
        NotFound: The folder has no such file.
    """
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    if name not in files:
        raise NotFound("file", name, files)
    path = files[name]
    media_type = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
    return path.read_bytes(), media_type or "application/octet-stream"
