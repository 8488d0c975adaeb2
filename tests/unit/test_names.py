"""Names are nouns and verbs: no bare participles, and no words that could mean anything.

A name that is one word says what a value is (`gaps`) or what a function does (`merge`). A participle alone says
neither: `parsed` needs its noun (`events`, `parsed_rows`), or its verb (`parse`).
"""

import ast
import re
from pathlib import Path

from support.syntax import names_given, syntax

ROOT = Path(__file__).parents[2]
PACKAGES = (ROOT / "producer" / "kinetoscope", ROOT / "tb_plugin" / "kinetoscope_tb")

VAGUE = {"each", "every", "everyone", "everything", "nothing", "one", "place", "places", "some", "thing", "things"}
IRREGULAR = (
    "begun|bought|broken|brought|built|caught|chosen|done|drawn|driven|fallen|felt|forgotten|found|given|gone|"
    "grown|heard|held|hidden|kept|known|laid|led|lent|lost|made|meant|met|paid|rewritten|said|seen|sent|shown|shut|"
    "sold|spelt|spent|spoken|spun|stuck|sunk|taken|thought|thrown|told|torn|understood|unknown|unseen|unsent|"
    "unwritten|withheld|won|worn|written"
)
NOUNS_AND_VERBS = (
    "bed|beginning|ceiling|docstring|elapsed|embed|embedding|encoding|ending|feed|heading|lightning|listing|mapping|"
    "matching|meaning|missing|need|padding|pending|ping|reading|recording|ring|saving|seed|setting|sibling|spacing|"
    "speed|spelling|spring|string|throttling|timing|tracing|training|warning"
)
OF_THE_API = {"enabled", "Changed"}  # an argument of Tracer, as of torch.autocast; an error's code for programs
UNCLEAR = re.compile(rf"_*(?!(?:{NOUNS_AND_VERBS})_*$)(?:{'|'.join(VAGUE)}|{IRREGULAR}|[a-z]{{2,}}(?:ed|ing))_*")


def is_unclear(name: str) -> bool:
    """Whether a name is a participle alone, or could stand for anything."""
    return name not in OF_THE_API and UNCLEAR.fullmatch(name[:1].lower() + name[1:]) is not None


def unclear_names_of(path: Path) -> list[str]:
    """The names of a module that don't follow the rule."""
    return sorted(filter(is_unclear, syntax(path).names))


def test_names_are_nouns_and_verbs():
    paths = (path for package in PACKAGES for path in sorted(package.rglob("*.py")))
    unclear = ((path.relative_to(ROOT), unclear_names_of(path)) for path in paths)
    if lines := "\n".join(f"{path}: {' '.join(names)}" for path, names in unclear if names):
        raise AssertionError(
            f"Name what these are (`gaps`, `parsed_rows`) or do (`parse`), instead of a participle or `one` alone:\n{lines}"
        )


def test_the_rule_knows_participles_from_nouns_and_verbs():
    assert [name for name in ("named", "_kept", "Postponed", "waiting", "one", "place") if not is_unclear(name)] == []
    clear = ("gaps", "seed", "string", "recording", "parse", "named_rows", "WindowClosed")
    assert [name for name in clear if is_unclear(name)] == []


def test_fields_are_no_names_of_their_own():
    source = "class Row:\n    shared: int = 0\n    def parsed(self, told): (held, x), *rest = told; return [one for one in x]"
    assert names_given(ast.parse(source)) == {"Row", "parsed", "self", "told", "held", "x", "rest", "one"}
