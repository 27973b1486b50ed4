"""Who asks: participants by their secret, organisers by their token, in a header or a cookie; tokens of forms."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from predilect.live.acts import check_role
from predilect.live.given import Refused
from predilect.live.poll import Poll
from predilect.live.state import Organiser, Role
from predilect.live.web.hosting import Host, form_token
from predilect.live.web.limits import Rate

_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'{images}; form-action 'self'; "
    "base-uri 'none'; object-src 'none'; frame-ancestors {ancestors}"
)


def policy(images: Sequence[str] = (), origins: Sequence[str] = ()) -> str:
    """What a page may load: images of these hosts; and which sites may show it in a frame."""
    return _POLICY.format(images="".join(f" https://{one}" for one in images), ancestors=" ".join(origins) or "'none'")


_LASTS = {"participant": 365 * 86_400, "organiser": 7 * 86_400}  # seconds; the organiser's cookie is the token itself
_LONGEST_SECRET = 200


class Visitor(NamedTuple):
    """A participant who asks: number, secret, and whether a cookie said so."""

    number: int
    secret: str
    by_cookie: bool


class Ruler(NamedTuple):
    """An organiser who asks: who they are, and the token by which that is known."""

    who: Organiser
    token: str


class Access:
    """What a visitor may do, decided from a request."""

    def __init__(self, host: Host, *, joins: int = 600, is_secure: bool = False, root: str = "") -> None:
        self.host, self.is_secure, self.root = host, is_secure, root
        self.answers, self.joins = Rate(2.0, 10.0), Rate(joins / 60.0, float(joins))
        self.attempts = Rate(0.2, 20.0)  # to guess a token, an address

    def participant(self, request: Request, poll: Poll) -> Visitor | None:
        """The participant who asks; None for somebody who has yet to join."""
        secret, by_cookie = _secret(request, f"participant-{poll.name}")
        number = None if secret is None else poll.who(secret=secret)
        if number is None or secret is None:
            if secret is not None and not by_cookie:
                raise Refused("no participant has this secret", 403)
            return None
        return Visitor(number, secret, by_cookie)

    def needed(self, request: Request, poll: Poll) -> Visitor:
        """The participant who asks; Refused for anybody else."""
        visitor = self.participant(request, poll)
        if visitor is None:
            raise Refused("join the poll first", 403)
        return visitor

    def organiser(self, request: Request, poll: Poll) -> Ruler | None:
        """The organiser who asks; None for anybody else."""
        token, by_cookie = _secret(request, f"organiser-{poll.name}")
        if token is None or not token.isascii():
            return None
        if (who := poll.organiser(token)) is not None:
            return Ruler(who, token)
        if not by_cookie:
            self.attempts.take(address_of(request))
        return None

    def ruling(self, request: Request, poll: Poll, role: Role = "reader") -> Ruler:
        """The organiser who asks; Refused for anybody else, and for whoever's role does not allow it."""
        ruler = self.organiser(request, poll)
        if ruler is None:
            raise Refused("this is for the organiser. Sign in with the token", 403)
        check_role(ruler.who, role)
        return ruler

    def watched(self, request: Request) -> list[Poll]:
        """The polls whose numbers may be told: all to whoever has the server's code, to an organiser theirs."""
        token, opened = _bearer(request) or "", self.host.each(lambda poll: poll)
        if hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self.host.code.encode()):
            return opened

        def theirs(polls: Iterable[Poll]) -> list[Poll]:
            return [poll for poll in polls if poll.is_organiser(token)] if token.isascii() else []

        if found := theirs(opened):
            return found
        self.attempts.take(address_of(request))
        if token and (found := theirs(self.host.every())):  # nobody may have opened it since the server began
            return found
        raise Refused("numbers are for whoever sends the server's code, or an organiser's token", 403)

    def check_header(self, request: Request, poll: Poll, secret: str) -> None:
        """Refused if a browser's cookie speaks for a request of the API that none of our pages made."""
        if _bearer(request) is None:
            self.check_form(request.headers.get("x-form-token", ""), poll, secret)

    def check_form(self, given: str, poll: Poll, secret: str) -> None:
        """Refused if the token of a form is not that of a page made for this visitor."""
        if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), form_token(secret, poll.name).encode()):
            raise Refused("this form is not of one of our pages. Open the page again", 403)

    def check_origin(self, request: Request) -> None:
        """Refused if a browser says that a form stands on a page from elsewhere."""
        site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
        # Where no referrer is sent the origin is "null"; browsers that say nothing of the site do send the origin.
        is_ours = origin is None or urlsplit(origin).netloc == request.headers.get("host")
        if site not in ("same-origin", "none") if site is not None else not is_ours:
            raise Refused("this form is not of one of our pages. Open the page again", 403)

    def remember(self, answer: Response, what: str, poll: Poll, secret: str) -> None:
        """Set the cookie of a participant or an organiser, for the pages of this poll alone."""
        path = f"{self.root}/{'p' if what == 'participant' else 'o'}/{poll.name}"
        for place in (path, f"{self.root}/api/polls/{poll.name}"):
            self.keep(
                answer, f"{what}-{poll.name}", secret, _LASTS[what], place, poll if what == "participant" else None
            )

    def keep(self, answer: Response, name: str, value: str, seconds: int, path: str, poll: Poll | None) -> None:
        """Set a cookie; for a participant of a ``poll`` that other sites may show, in their frames too.

        Browsers keep a cookie within another site's frame only by TLS, and many only apart for each such site.
        """
        in_frames = poll is not None and bool(poll.settings.origins) and self.is_secure
        answer.set_cookie(
            name, value, max_age=seconds, path=path, httponly=True, samesite="none" if in_frames else "lax",
            secure=self.is_secure,
        )  # fmt: skip
        if in_frames:  # Python knows the attribute from 3.14 on
            header, told = answer.raw_headers[-1]
            answer.raw_headers[-1] = header, told + b"; Partitioned"

    def forget(self, answer: Response, what: str, poll: Poll) -> None:
        """Remove that cookie."""
        path = f"{self.root}/{'p' if what == 'participant' else 'o'}/{poll.name}"
        for place in (path, f"{self.root}/api/polls/{poll.name}"):
            answer.delete_cookie(f"{what}-{poll.name}", path=place)
            if what == "participant":  # as a frame has it, which is another one
                self.keep(answer, f"{what}-{poll.name}", "", 0, place, poll)


def address_of(request: Request) -> str:
    """Address of a visitor, as the server or a trusted proxy has it, to count by; of IPv6 the network of a household.

    It is kept in memory only.
    """
    host = "" if request.client is None else request.client.host
    try:
        found = ip_address(host)
    except ValueError:
        return host
    if isinstance(found, IPv4Address):
        return host
    return str(found.ipv4_mapped or ip_network((found.packed, 64), strict=False))


def _bearer(request: Request) -> str | None:
    """What a header says who asks; a browser sends none of itself."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    return value.strip()[:_LONGEST_SECRET] or None if scheme.lower() == "bearer" else None


def _secret(request: Request, cookie: str) -> tuple[str | None, bool]:
    value = _bearer(request)
    return (value, False) if value is not None else (request.cookies.get(cookie, "")[:_LONGEST_SECRET] or None, True)
