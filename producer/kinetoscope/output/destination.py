"""Where traces go: their names, the places of their copies, and how many stay.

This module imports nothing but the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import UsageError
from .name_template import TRACE, fixed_prefix, trace_file, unknown_variables


@dataclass(frozen=True, kw_only=True)
class Destination:
    """Where traces are put.

    Args:
        file: The name in the run's folder, with the variables of `name_template`; it gets the ending of `trace_file`,
            and the file is compressed if it ends in `.gz`.
        remote: The URL of a folder that mirrors the logdir: each run has a folder there. None for none.
        remote_file: The URL of each trace instead, with variables.
        keep: How many of the rank's newest traces stay in the run's folder; -1 for all. A trace stays at least until
            it is uploaded.
        overwrite: Whether the run uses its folder even if it has traces, and replaces those of the same name.

    Raises:
        UsageError: A template with an unknown variable or whose braces don't match, an empty or hidden name, or a
            number below -1.
    """

    file: str = TRACE
    remote: str | None = None
    remote_file: str | None = None
    keep: int = -1
    overwrite: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "file", trace_file(self.file))  # the class is frozen
        for template in (self.file, self.remote or "", self.remote_file or ""):
            _check_variables(template)
        if not self.file.rpartition("/")[2].strip() or self.file.rpartition("/")[2].startswith("."):
            raise UsageError(f"file={self.file!r}: a trace's name can't be empty or begin with a dot, which hides it.")
        if ".." in self.file.split("/"):
            raise UsageError(f"file={self.file!r}: a trace is in its run's folder, so its name can't contain '..'.")
        if self.keep < -1:
            raise UsageError(f"keep={self.keep}: it is a number of traces, or -1 for all.")

    @property
    def traces_to_keep(self) -> int:
        """How many traces stay: at least one if there is no remote."""
        return 1 if self.keep == 0 and self.remote is None and self.remote_file is None else self.keep

    @property
    def url_prefixes(self) -> list[str]:
        """The prefixes of the URLs of copies."""
        return [fixed_prefix(template) for template in (self.remote, self.remote_file) if template is not None]


def _check_variables(template: str) -> None:
    """Check the variables of a template.

    Raises:
        UsageError: It has an unknown one, or its braces don't match.
    """
    try:
        problem = unknown_variables(template)
    except ValueError as error:
        raise UsageError(f"{template!r} isn't a format string: {error}.") from error
    if problem:
        raise UsageError(problem)
