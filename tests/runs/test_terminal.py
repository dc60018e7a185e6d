"""Output that fails, or that somebody else has written, does no harm."""

import io
import sys

import pytest

from npdg.runs import terminal


class Broken(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


def test_a_stream_that_fails_is_silent_from_then_on():
    stream = terminal.LastingStream(Broken())
    assert stream.write("one") == 3
    assert stream.failed
    assert stream.write("two") == 3
    assert not stream.isatty()


def test_letters_that_a_terminal_does_not_have_are_escaped():
    raw = io.BytesIO()
    stream = terminal.LastingStream(io.TextIOWrapper(raw, encoding="latin-1", write_through=True))
    stream.write("ε = ½")
    assert raw.getvalue() == b"\\u03b5 = \xbd"


def test_control_characters_are_taken_out():
    assert terminal.clean("a\x1b[2Jb\x07\nc\td\u202ee") == "a\ufffd[2Jb\ufffd\nc\td\ufffde"


def test_an_answer_that_cannot_be_written_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Broken())
    with pytest.raises(OSError, match="Broken pipe") as caught:
        terminal.answer("{}")
    assert caught.value.filename == "standard output"


def test_a_complaint_is_one_line(capsys):
    terminal.complain("a\nb \x1b]0;title\x07 c")
    assert capsys.readouterr().err == "npdg: a b \ufffd]0;title\ufffd c\n"
