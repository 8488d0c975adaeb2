"""What small files have is parsed once, until they change."""

import pytest

from kinetoscope_tb.engine.parsed_files import ParsedFiles


def test_a_file_is_parsed_again_once_it_has_changed(tmp_path):
    file, parsed_files, texts = tmp_path / "a", ParsedFiles(), []

    def parse():
        texts.append(file.read_text())
        return texts[-1]

    file.write_text("first")
    assert [parsed_files(str(file), parse) for _ in range(3)] == ["first"] * 3
    file.write_text("a longer one")
    assert [parsed_files(str(file), parse) for _ in range(3)] == ["a longer one"] * 3
    assert texts == ["first", "a longer one"]


def test_a_damaged_file_fails_without_being_read_again(tmp_path):
    file, parsed_files, count = tmp_path / "a", ParsedFiles(), []

    def parse():
        count.append(1)
        raise ValueError("damaged")

    file.write_text("x")
    for _ in range(3):
        with pytest.raises(ValueError, match="damaged"):
            parsed_files(str(file), parse)
    assert len(count) == 1


def test_a_missing_file_has_the_value_of_none(tmp_path):
    assert ParsedFiles()(str(tmp_path / "none"), lambda: 7) == 7
