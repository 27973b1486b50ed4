"""What the pages say: every text in every language, none that is not said, none that the pages say by themselves."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from importlib.resources import files
from itertools import chain
from typing import get_args

import pytest

from live.polls import answered, made
from live.served import browser, fields, served
from predilect.errors import DataError
from predilect.live import Settings
from predilect.live.given import REASONS
from predilect.live.settings import Kind, Pids, Strategy, agreed, described
from predilect.live.state import ItemState, Role, Status
from predilect.live.suspects import REASONS as SUSPECTED_OF
from predilect.live.web import catalogues, pages
from predilect.live.web.catalogues import REFUSED, catalogue, forms, template, translations
from predilect.live.web.languages import LANGUAGES
from predilect.live.web.texts import Speech, english, preferred

OTHERS = LANGUAGES[1:]
WEB = files("predilect.live.web")
TEMPLATES = {one.name: one.read_text(encoding="utf-8") for one in (WEB / "templates").iterdir()}
SETTINGS = Settings(question="?").to_dict()
# Keys that are put together, by what they begin with.
TOGETHER = {
    "status_": get_args(Status), "state_": get_args(ItemState), "reason_": REASONS, "suspect_": SUSPECTED_OF,
    "kind_": get_args(Kind), "strategy_": get_args(Strategy), "pids_": get_args(Pids), "role_": get_args(Role),
    "settings_": {one.section for one in described().values()},
    "act_": (*get_args(Status), "made", "changed", "added", "accepted", "refused", "retired", "edited", "merged",
             "parted", "invited", "revoked", "erased"),
    "back_": ("p", "o"),
    "option_": [name for name, value in SETTINGS.items() if isinstance(value, bool)],
    "beside_": ("mine", "crowd", "rest"), "beside_means_": ("mine", "crowd"),
    "wrong_": ("400", "403", "404", "409", "413", "429", "500", "503"),
}  # fmt: skip


def trees(*folders):
    """The code of some folders."""
    for file in (path for folder in folders for path in files(folder).iterdir() if path.name.endswith(".py")):
        yield from ast.walk(ast.parse(file.read_text(encoding="utf-8")))


def said(node):
    """What a text of the code says, {} for what differs."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)


LIVE = ("predilect.live", "predilect.live.web")
STRINGS = {said(node) for node in trees(*LIVE) if isinstance(node, ast.JoinedStr | ast.Constant)}


def test_english_german_french_and_spanish_are_there():
    assert LANGUAGES == ("en", "de", "es", "fr")
    assert [Speech(one).name for one in LANGUAGES] == ["English", "Deutsch", "Español", "Français"]


@pytest.mark.parametrize("language", OTHERS)
def test_every_text_is_there_and_none_is_doubtful(language):
    found = catalogue(language)
    lacking = [
        message.id
        for message in template()
        if (told := found.get(message.id, message.context)) is None or told.fuzzy or not all(forms(told.string))
    ]
    assert lacking == []
    assert len(found) == len(template())  # and none of what is said no more
    assert not found.obsolete


@pytest.mark.parametrize("language", OTHERS)
def test_few_texts_are_the_same_as_in_english(language):
    found = catalogue(language)
    same = [message.id for message in template() if found.get(message.id, message.context).string == message.id]
    assert len(same) < 8, same
    assert all(len(one.split()) <= 2 for one in same)


def test_every_text_is_said_and_every_key_is_a_text():
    told = "".join(TEMPLATES.values())
    whole = {*STRINGS, *SETTINGS, *re.findall(r'"([\w-]+)"', told), *(str(number) for number in range(400, 600))}
    begun = {*TOGETHER, *re.findall(r'say\("(\w+_)" \+', told), *(f"{name}_" for name in SETTINGS)}
    put_together = {begin + end for begin in begun for end in whole}
    assert english().keys() - whole - put_together == set()
    asked = set(re.findall(r'say\("(\w+)"[,)]', told))
    assert asked | {begin + end for begin, ends in TOGETHER.items() for end in ends} <= english().keys()


def test_templates_say_nothing_by_themselves():
    for name, told in TEMPLATES.items():
        shown = re.sub(
            r"\{#.*?#\}|\{\{.*?\}\}(/\w+)?|\{% block kind %\}.*?\{% endblock %\}|\{%.*?%\}", "", told, flags=re.S
        )
        attributes = re.findall(r'(?:aria-label|alt|title|placeholder|data-said)="([^"]*)"', shown)
        words = re.findall(r"[^\W\d_]{2,}", re.sub(r"<[^>]*>", " ", shown) + " ".join(attributes))
        assert set(words) <= {"SVG", "PNG"}, name


@pytest.mark.slow
def test_every_refusal_has_words_and_no_others_have():
    calls = (node for node in trees(*LIVE) if isinstance(node, ast.Call))
    refused = {said(node.args[0]) for node in calls if getattr(node.func, "id", "") == "Refused"}
    known = {message.id for message in template() if message.context == REFUSED}
    assert len(refused) > 30
    assert refused <= known
    texts = {like(one) for one in refused | STRINGS if re.search(r"\w{2}", one.replace("{}", ""))}
    assert {one for one in known if not any(re.fullmatch(text, one) for text in texts)} == set()
    for language in OTHERS:
        say = Speech(language)
        assert {say.refused(one.replace("{}", "7"), 409) for one in refused}.isdisjoint({say.refused("", 409)})


def test_a_refusal_is_told_by_the_words_that_say_most_of_it():
    say = Speech("de")
    assert say.refused('the item "tea" is there already: it is active', 409) == "„tea“ gibt es schon."
    assert say.refused("the name of an item has 501 characters; at most 500 are shown", 400) == (
        "Ein Eintrag darf höchstens 500 Zeichen haben; dieser hat 501."
    )
    assert say.refused("words that no catalogue knows", 409) == say.refused("", 409) == "Das geht jetzt nicht."
    assert say.refused("", 418) == say.refused("", 400)
    assert Speech("en").refused("words that no catalogue knows", 409) == "Words that no catalogue knows."


def test_the_language_that_a_browser_asks_for():
    assert preferred("de-AT,de;q=0.9,en;q=0.8", "en") == "de"
    assert preferred("it, en;q=0.3, de;q=0.5", "en") == "de"
    assert preferred("fr-CA", "en") == "fr"
    assert preferred("it", "de") == "de"
    assert preferred("de;q=0, en;q=nonsense", "en") == "en"


def test_numbers_and_days_are_written_as_the_language_writes_them():
    assert Speech("de").number(-1.25) == "\u22121,25"
    assert Speech("en").percent(0.999) == "> 99\u00a0%"
    assert [Speech(one).percent(0.005) for one in OTHERS] == ["1\u00a0%"] * 3
    assert Speech("en").percent(0.0049) == "< 1\u00a0%"
    assert [re.sub(r"\s", " ", Speech(one).number(3620.5)) for one in LANGUAGES] == [
        "3,620.50", "3.620,50", "3.620,50", "3 620,50",
    ]  # fmt: skip
    assert [re.sub(r"\s", " ", Speech(one).time("2026-11-29T15")) for one in LANGUAGES] == [
        "29 Nov 2026, 15:00", "29.11.2026, 15:00", "29 nov 2026, 15:00", "29 nov. 2026, 15:00",
    ]  # fmt: skip


def test_a_number_has_its_form():
    assert Speech("en").counts(1, 1) == "1 answer of 1 person"
    assert Speech("en").counts(0, 2) == "0 answers of 2 people"
    assert Speech("de").counts(1234, 1) == "1.234 Antworten von 1 Person"
    assert Speech("fr").counts(0, 2) == "0 réponse de 2 personnes"  # to the French nought is one
    assert Speech("es")("done_counts", n=1) == "Ha respondido a 1 pregunta, y su respuesta cuenta."
    for language in LANGUAGES:
        say = Speech(language)
        for key, told in english().items():
            fills = {name: "x" for name in re.findall(r"\{(\w+)\}", "".join(told)) if name != "n"}
            for n in (0, 1, 2, 5, 10**6):
                assert say(key, n=n, **fills)


def shown(page):
    """Texts that a page shows, or tells to those who hear it, but not what is marked as of another language."""
    marked = r"<(\w+)[^>]* (?:lang=\"\w+\"|translate=\"no\")[^>]*>.*?</\1>"
    page = re.sub(marked, "", page[page.index("<body") :], flags=re.S)
    inside = re.findall(r'(?:aria-label|alt|title|data-said|data-not-sent)="([^"]*)"', page)
    return [text.strip() for text in chain(re.split(r"<[^>]*>", page), inside) if re.search(r"[^\W\d_]", text)]


def everything(address, tokens, language, name):
    """All pages of a poll, as somebody sees them who reads a language."""
    headers = {"accept": "text/html", "accept-language": language}
    guest, ann, bob = (browser(address, headers=headers) for _ in range(3))
    yield guest.get(f"/p/{name}")
    yield guest.get("/p/once")
    yield guest.get("/p/nowhere")
    yield guest.get(f"/p/{name}/mine")
    yield guest.post(f"/p/{name}/join")
    for one in (ann, bob):
        told = fields(guest.get(f"/p/{name}").text, "/join") | {"agreed": "yes"}
        yield one.post(f"/p/{name}/join", data=told)
    csrf = fields(ann.get(f"/p/{name}").text, "/undo" if "/undo" in ann.get(f"/p/{name}").text else "/report")["csrf"]
    yield ann.post(f"/p/{name}/propose", data={"csrf": csrf, "text": "Zzz zzzzz zzz"})
    yield ann.post(f"/p/{name}/propose", data={"csrf": csrf, "text": f"Qqq qqqqq {language}"})
    question = fields(ann.get(f"/p/{name}").text, "/answer")
    yield ann.post(f"/p/{name}/answer", data=question | {"answer": "left"})
    yield ann.post(f"/p/{name}/answer", data=question | {"answer": "xxx"})
    for place in ("/me", "/mine", "/results", "/room"):
        yield ann.get(f"/p/{name}{place}")
    link = re.search(r'href="[^"]*(/p/\w+/r/[^"]+)"', bob.get(f"/p/{name}/me").text)[1]
    yield ann.get(link)
    yield ann.post(f"/p/{name}/erase", data={"csrf": csrf, "sure": "yes"})
    yield guest.get(f"/o/{name}")
    yield guest.post(f"/o/{name}/sign-in", data={"token": "xxx"})
    yield guest.get("/new")
    ruler = browser(address, headers=headers, cookies={f"organiser-{name}": tokens[name]})
    for place in ("", "/items", "/items/1", "/people", "/organisers", "/preview", "/settings", "/room", "/items/999"):
        yield ruler.get(f"/o/{name}{place}")


def like(text):
    """Pattern of a text, with whatever fills it."""
    return re.sub(r"\\{\w*\\}", ".+", re.escape(text))


@pytest.mark.slow
@pytest.mark.parametrize("language", OTHERS)
def test_pages_say_nothing_in_english(tmp_path, language):
    more = {"public": True, "proposals": True, "own_ranking": 1, "consent": "Kkk.", "retention_days": 1}
    tokens = {}
    for name in ("x", "once"):
        told = more | {"name": name, "question": "Qqq?", "at_once": name == "once"}
        with made(tmp_path / f"{name}.db", ["Zzz zzzzz", "Www", "Vvv"], **told) as poll:
            tokens[name] = poll.token
            answered(poll, ["ann", "bob"], 2)
            poll.board()  # what is compiled is compiled before somebody waits for a page
    found = catalogue(language)
    texts = [
        (re.compile(like(form)), [re.compile(like(one)) for one in forms(found.get(text.id, text.context).string)])
        for text in template() if text.context != REFUSED for form in forms(text.id)
    ]  # fmt: skip
    pages = 0
    with served(str(tmp_path)) as (address, _):
        for answer in everything(address, tokens, language, "x"):
            pages += 1
            assert f'<html lang="{language}" dir="ltr">' in answer.text, answer.url
            for text in shown(answer.text):
                for english_text, own in texts:
                    is_english = english_text.fullmatch(text) and not any(one.fullmatch(text) for one in own)
                    assert not is_english, (answer.url, text)
                assert not re.search(r"\b(the|this|there|is|are|of|with|you|your|answers?)\b", text), (answer.url, text)
    assert pages > 25


HEADER = 'msgid ""\nmsgstr ""\n"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
DONE = 'msgctxt "done"\nmsgid "Thank you!"\nmsgstr "Grazie!"\n\n'
RANKING = 'msgctxt "my_ranking_after"\nmsgid "{}"\nmsgid_plural "{}"\n'.format(*english()["my_ranking_after"])


@pytest.fixture
def italian(tmp_path, monkeypatch):
    """What to do with a catalogue: have it read."""

    def read(told, name="it"):
        place = tmp_path / f"{name}.po"
        place.write_bytes(told if isinstance(told, bytes) else told.encode())
        monkeypatch.setitem(catalogues.CATALOGUES, name, place)
        translations.cache_clear()
        return Speech(name)

    yield read
    translations.cache_clear()


def test_what_is_missing_or_doubtful_is_said_in_english(italian):
    say = italian(
        f'{HEADER}"Language: tlh\\n"\n\n{DONE}#, fuzzy\nmsgctxt "results"\nmsgid "Results"\nmsgstr "Risultati?"\n\n'
        'msgctxt "my_data"\nmsgid "My data"\nmsgstr ""\n\nmsgctxt "refuse"\nmsgid "As it was"\nmsgstr "Rifiuta"\n\n'
        f'{RANKING}msgstr[0] "Dopo una risposta."\nmsgstr[1] ""\n'
    )
    assert say("done") == "Grazie!"
    assert [say(key) for key in ("results", "my_data", "refuse")] == ["Results", "My data", "Refuse"]
    assert say("my_ranking_after", n=1) == "Dopo una risposta."
    assert say("my_ranking_after", n=3) == "Your own ranking is shown after 3 answers."
    assert say.refused("the poll is closed", 409) == "This is not possible now."
    assert say.number(0.5) == "0,50"


def test_a_language_from_right_to_left(italian):
    say = italian(DONE.replace("Grazie", "תודה"), "he")
    assert (say.locale.text_direction, say.name, say("done")) == ("rtl", "עברית", "תודה!")


def test_six_forms_for_a_number(italian):
    forms_of_arabic = "".join(f'msgstr[{form}] "{form} {{n}}"\n' for form in range(6))
    rule = "n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5"
    say = italian(
        HEADER.replace("nplurals=2; plural=(n != 1)", f"nplurals=6; plural=({rule})") + RANKING + forms_of_arabic, "ar"
    )
    assert [say("my_ranking_after", n=n)[0] for n in (0, 1, 2, 5, 11, 100)] == list("012345")


def test_what_a_catalogue_says_is_text(italian):
    say = italian(DONE.replace("Grazie!", "<script>alert(1)</script>"))
    assert "<" not in pages.templates.from_string('{{ say("done") }}').render(say=say).replace("&lt;", "")


def told_anew(one, other):
    """A catalogue of one text with other words."""
    return HEADER + DONE.replace(one, other)


@pytest.mark.parametrize(("told", "why"), [
    (DONE.encode("utf-16"), "is not UTF-8"),
    (b"\x7fELF\x00\xff", "is not UTF-8"),
    ("what is this?", "line 1 is none of a catalogue"),
    (told_anew('Grazie!"', "Grazie!"), "line 7 is none of a catalogue"),
    (told_anew("msgstr", "msgstring"), "line 7 is none of a catalogue"),
    (told_anew('msgstr "Grazie!"', ""), "is no catalogue"),
    ('"lost"', "is no catalogue"),
    ('msgid "lost"', "is no catalogue"),
    (told_anew("Grazie", "{n}"), "it.po, line 6: '{n}!' cannot be filled. In English there stands 'Thank you!'"),
    (told_anew("Grazie", "{n}").replace('"Pl', '"Language: it\\n"\n"Pl'), "it.po, line 7: "),
    (told_anew("Grazie", "{n}" * 5_000), "cannot be filled"),
    (told_anew("Grazie", "{"), "cannot be filled"),
    (told_anew("Grazie", "{}"), "cannot be filled"),
    (f'{RANKING}msgstr[0] "{{n.__class__}}"\nmsgstr[1] "{{n}}"\n', "cannot be filled"),
    (f'{RANKING}msgstr[0] "{{n}}"\nmsgstr[1] "{{n:>999999999}}"\n', "cannot be filled"),
    (f'{RANKING}msgstr[0] "{{n}}"\nmsgstr[1] "{{n!r}}"\n', "cannot be filled"),
    (f'{RANKING}msgstr[0] "{{n}}"\nmsgstr[1] "{{n[0]}}"\n', "cannot be filled"),
    (f'{RANKING}msgstr[0] "{{n}}"\nmsgstr[1] "{{m}}"\n', "cannot be filled"),
    (f'{HEADER}{RANKING}msgstr[0] "{{n}}"\nmsgstr[5] "{{n}}"\n', "is no catalogue"),
    ('msgctxt "refused"\nmsgid "a participant may propose {} items"\nmsgstr "{1}"\n', "cannot be filled"),
    ('msgctxt "refused"\nmsgid "a participant may propose {} items"\nmsgstr "{said}"\n', "cannot be filled"),
    (HEADER.replace("nplurals=2", "nplurals=999999999") + DONE, "nplurals=N;, N from 1 to 6"),
    (HEADER.replace("nplurals=2;", "NPLURALS*=utf-8''999999999;") + DONE, "nplurals=N;, N from 1 to 6"),
    (HEADER.replace("n != 1", "n % 0") + DONE, "cannot be worked out"),
    (HEADER.replace("n != 1", "1 / (n - 7)") + DONE, "cannot be worked out"),
    (HEADER.replace("n != 1", "__import__('os')") + DONE, "cannot be worked out"),
    (HEADER.replace("n != 1", "(" * 900) + DONE, "cannot be worked out"),
])  # fmt: skip
def test_what_is_no_catalogue_is_refused_in_words(italian, told, why):
    with pytest.raises(DataError, match=why) as refused:
        italian(told)
    assert "it.po" in str(refused.value)
    assert len(str(refused.value)) < 500


def test_a_file_that_is_named_after_no_language_is_refused(italian):
    for name in ("notes", "tlh", "x", "pt-NOWHERE-1", ".."):
        with pytest.raises(DataError, match="named after no language"):
            italian(DONE, name)


def python(code, folder):
    """What a Python says that finds catalogues in a folder, too."""
    told = os.environ | {"PREDILECT_LANGUAGES": str(folder)}
    return subprocess.run([sys.executable, *code], capture_output=True, text=True, env=told, timeout=120, check=False)


@pytest.mark.slow
def test_a_folder_of_the_servers_owner(tmp_path):
    (tmp_path / "pt_BR.po").write_text(HEADER + DONE.replace("Grazie", "Obrigado"), encoding="utf-8")
    (tmp_path / "de.po").write_text(HEADER + DONE.replace("Grazie", "Vergelt’s Gott"), encoding="utf-8")
    code = (
        "from predilect.live.web.texts import *; from predilect.live.settings import agreed; "
        "from predilect.live.web.api import Joining; "
        "print(*LANGUAGES, preferred('pt-BR', 'en'), Speech('pt-BR')('done'), Speech('de')('done'), "
        "Speech('de')('send'), agreed({'question': '?', 'language': 'pt-BR'}).language, "
        "Joining.model_json_schema()['properties']['language']['pattern'])"
    )
    found = python(["-X", "utf8", "-c", code], tmp_path)
    assert found.stdout.strip() == (
        "en de es fr pt-BR pt-BR Obrigado! Vergelt’s Gott! Send pt-BR ^(en|de|es|fr|pt-BR)?$"
    ), found.stderr
    with made(tmp_path, name="x"):
        pass
    (tmp_path / "it.po").write_text(HEADER + DONE.replace("Grazie", "{n}"), encoding="utf-8")
    for folder, why in ((tmp_path, "it.po, line 6"), (tmp_path / "nowhere", "PREDILECT_LANGUAGES is a folder")):
        refused = python(["-m", "predilect", "poll", "serve", str(tmp_path / "poll.db"), "--port", "0"], folder)
        assert why in refused.stderr
        assert "Traceback" not in refused.stderr
        assert refused.returncode == 2


def test_a_poll_in_a_language_that_is_not_here_any_more_is_read_and_said_in_english():
    there = Settings.of({"question": "?", "language": "tlh"})
    assert agreed({"public": True}, there).language == "tlh"
    with pytest.raises(DataError, match=f"language is one of {', '.join(LANGUAGES)}; got"):
        agreed({"language": "tlh"}, there)
