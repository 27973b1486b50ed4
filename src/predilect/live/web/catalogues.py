"""Catalogues of gettext, one a language, read and checked.

``en.pot`` is the English that all others are translated from; the context of a text is its key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO, StringIO
from string import Formatter
from typing import Any

from babel import Locale, UnknownLocaleError
from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import write_mo
from babel.messages.pofile import PoFileError, read_po

from predilect._base.text import one_line, quoted
from predilect.errors import DataError
from predilect.live.web.languages import CATALOGUES, FOLDER

REFUSED = "refused"  # context of what the code says, with {} for what differs
_LINE = re.compile(r'\s*(#.*|((msgctxt|msgid|msgid_plural|msgstr(\[[0-5]\])?)\s)?\s*"([^"\\]|\\.)*"\s*)?')
_TOO_MANY_FORMS = re.compile(r"nplurals(?!\s*=\s*[1-6]\s*;)", re.IGNORECASE)  # Arabic has six, no language more
_BY_NOTHING = re.compile(r"[%/](?!\s*[1-9])")


@cache
def template() -> tuple[Message, ...]:
    """What there is to say, in English."""
    read = read_po(StringIO((FOLDER / "en.pot").read_text(encoding="utf-8")), abort_invalid=True)
    return tuple(message for message in read if message.id)


def forms(text: Any) -> tuple[str, ...]:
    """A text, or the forms of one that says a number."""
    return (text,) if isinstance(text, str) else tuple(text)


@cache
def translations(language: str) -> NullTranslations:
    """What a language says; DataError where its catalogue cannot be used."""
    if language not in CATALOGUES:
        return NullTranslations()
    found, compiled = catalogue(language), BytesIO()
    write_mo(compiled, found)
    compiled.seek(0)
    try:
        return GNUTranslations(compiled)
    except ValueError as error:
        raise DataError(f"{CATALOGUES[language]} has plural forms that cannot be worked out: {error}") from error


def catalogue(language: str) -> Catalog:
    """The catalogue of a language.

    Raises
    ------
    DataError
        If the file is named after no language, is no catalogue, or a text cannot be filled as the English one is.
    """
    file = CATALOGUES[language]
    try:
        locale = Locale.parse(language, sep="-")
        told = file.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not UTF-8: {error.reason} at byte {error.start}") from error
    except (UnknownLocaleError, ValueError):
        raise DataError(f"{file} is named after no language that is known, as it.po and pt_BR.po are") from None
    for number, line in enumerate(told.split("\n"), 1):
        if _LINE.fullmatch(line) is None:
            raise DataError(f"{file}, line {number} is none of a catalogue: {quoted(line[:80])}")
    if _TOO_MANY_FORMS.search(told):
        raise DataError(f"{file} has a header Plural-Forms that does not begin with nplurals=N;, N from 1 to 6")
    try:  # the name of the file says the language, and not its header
        read = StringIO(re.sub(r'^"Language:.*', "", told, flags=re.MULTILINE))
        found = read_po(read, locale=locale, abort_invalid=True)
    except (PoFileError, ValueError, IndexError) as error:
        raise DataError(f"{file} is no catalogue: {one_line(str(error))}") from error
    if _BY_NOTHING.search(found.plural_expr):
        raise DataError(f"{file} has plural forms that cannot be worked out: {quoted(found.plural_expr[:80])}")
    for message in template():
        translated = found.get(message.id, message.context)
        if translated is None or translated.fuzzy:
            continue
        for text in filter(None, forms(translated.string)):
            try:
                _check(text, message)
            except (ValueError, IndexError, KeyError) as error:
                raise DataError(
                    f"{file}, line {translated.lineno}: {quoted(text)} cannot be filled. In English there stands "
                    f"{quoted(forms(message.id)[-1])}"
                ) from error
    found.charset = "utf-8"
    return found


def _check(text: str, message: Message) -> None:
    """An error unless what fills the English text fills this one; forms for a number may leave it out."""
    found, english = {*_placeholders(text)}, {name for form in forms(message.id) for name in _placeholders(form)}
    if message.context == REFUSED:  # what differs has no names, may be left out, and may be numbered
        text.format(*[""] * str(message.id).count("{}"))
    elif found != english and (len(forms(message.id)) == 1 or found | {"n"} != english):
        raise KeyError(*found ^ english)


def _placeholders(text: str) -> Iterator[str]:
    """Names in braces; ValueError for what asks for more than a value: an attribute, a width."""
    for _, name, form, conversion in Formatter().parse(text):
        if name is not None:
            if form or conversion or not re.fullmatch(r"\w*", name):
                raise ValueError(name)
            yield name
