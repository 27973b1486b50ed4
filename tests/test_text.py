"""Text from data in messages: no terminal obeys it, and it is never longer than somebody reads."""

from __future__ import annotations

import traceback

import pytest

from predilect._base.text import LONGEST_MESSAGE, printable, shown
from predilect.errors import ConvergenceWarning, DataError, DataWarning, OutputError

HARMFUL = "\x1b]0;pwned\x07 \x9b31m \r\n\t \u202e \u2028 \udcff \x7f"


def test_what_steers_a_terminal_is_written_as_an_escape():
    assert printable("a\x1b[31m\nb\u202e\udcff") == "a\\x1b[31m\\nb\\u202e\\udcff"


def test_letters_of_any_script_and_joined_emoji_stay_as_they_are():
    text = "é ﷽ می‌خواهم 日本　語 👩‍👧 a\u00a0b \\x1b"
    assert printable(text) == text


@pytest.mark.parametrize("kind", [DataError, OutputError, DataWarning, ConvergenceWarning])
def test_errors_and_warnings_are_harmless_however_they_are_printed(kind):
    error = kind(f"no column {HARMFUL}")
    printed = str(error) + "".join(traceback.format_exception_only(error))
    assert printable(printed.replace("\n", "")) == printed.replace("\n", "")
    assert "\\x1b]0;pwned\\x07" in str(error)


def test_the_middle_of_a_long_message_gives_way_and_the_advice_at_its_end_stays():
    told = str(DataError("row 1, " + "x" * 20_000_000 + ". Do this."))
    assert len(told) <= LONGEST_MESSAGE
    assert told.startswith("row 1, xxx")
    assert told.endswith("Do this.")


def test_an_id_in_a_message_is_short_and_on_one_line():
    assert shown("two\nlines") == "two\\nlines"
    assert shown(7) == "7"
    assert len(shown("x" * 20_000_000)) < 100
    assert len(shown("\x1b" * 20_000_000)) < 500
