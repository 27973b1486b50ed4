"""Reads charts and pages back: as XML and as HTML, and the colours that people would see."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

__all__ = ["VOID", "WILD", "Page", "contrast", "mixed", "palettes", "picture", "words"]

SVG = "{http://www.w3.org/2000/svg}"
VOID = {"meta", "br", "input", "link", "img", "hr", "base", "source", "wbr"}
# Names that would break a page that is careless of them.
WILD = [
    "<script>alert(1)</script>", "</title></svg><img src=x onerror=alert(1)>", "a & b \"quoted\" 'too'",
    "long " + "x" * 300, "中文模型名稱", "😀 emoji", "مرحبا بالعالم", "two\nlines\x00\x1b[31m",
    "\u202eevil", "]]>", "${name}",
]  # fmt: skip


def picture(drawn: str) -> ElementTree.Element:
    """A chart as XML; what every chart promises is checked on the way."""
    root = ElementTree.fromstring(drawn)
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    title, told = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert title.text
    assert title.text == root.get("aria-label")
    assert told is not None
    assert told.text
    assert not [one for one in root.iter() if one.tag.removeprefix(SVG) in ("script", "image", "use", "a")]
    assert not re.search(r"NaN|nan\b|inf\b", " ".join(one.get("d", "") for one in root.iter()))
    return root


def words(root: ElementTree.Element) -> list[str]:
    """Texts that are seen, without those of titles."""
    return [
        "".join([one.text or "", *(part.tail or "" for part in one)]).strip()
        for one in root.iter()
        if one.tag in (f"{SVG}text", f"{SVG}tspan")
    ]


class Page(HTMLParser):
    """Elements of a page in order; what is not closed as it should be is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs)
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1:] == [tag], f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str]]:
        """Attributes of all elements of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        """What is read."""
        return " ".join(" ".join(self.texts).split())


def palettes(sheet: str) -> list[dict[str, str]]:
    """Colours of each set of custom properties of a style sheet: light, dark, print."""
    found = re.findall(r"\.predilect\{(--[^}]*)", sheet)
    return [dict(re.findall(r"--(\w+):(#[0-9a-f]{3,6})", one)) for one in found]


def _channels(colour: str) -> list[float]:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    return [int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)]


def mixed(colour: str, paper: str, opacity: float) -> str:
    """A colour that lets the paper through."""
    pairs = zip(_channels(colour), _channels(paper), strict=True)
    return "#" + "".join(f"{round(255 * (opacity * a + (1 - opacity) * b)):02x}" for a, b in pairs)


def contrast(one: str, other: str) -> float:
    """Contrast of two colours by WCAG 2."""

    def luminance(colour: str) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _channels(colour)]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
