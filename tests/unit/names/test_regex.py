import re

from kinetoscope_tb.names.regex import regex


def test_an_expression_is_compiled_at_its_first_use(monkeypatch):
    compiled = []
    monkeypatch.setattr(
        re, "compile", lambda *arguments, original=re.compile: compiled.append(1) or original(*arguments)
    )
    word = regex(r"(\w+)-a", re.IGNORECASE)
    assert (word.pattern, compiled) == (r"(\w+)-a", [])
    assert word.match("b-A")[1] == "b"
    assert (word.fullmatch("c"), word.groups, compiled) == (None, 1, [1])
    assert regex(rb"\d").sub(b"x", b"a1") == b"ax"
