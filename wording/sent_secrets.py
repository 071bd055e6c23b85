"""Redaction of secrets in a server's answer: a server may repeat a request's header (Z39). Pure.

A secret is found plain, escaped (for an address, JSON, HTML, a Python or Go string) and in Base64, also inside a
longer text such as `user:password`.
"""

import re
from base64 import b64encode
from html.entities import codepoint2name
from typing import NamedTuple

CUT = b"[redacted]"
# Characters. A shorter secret could be any word of an answer. NIST SP 800-63B (2017), 5.1.1.2, requires as many.
SHORTEST = 8
_PLAIN = re.compile(rb"[A-Za-z0-9]+")
_RUNS = re.compile(rb"\\+|.", re.DOTALL)
_BASE64 = rb"[A-Za-z0-9+/_-]"


class _Form(NamedTuple):
    """One spelling of a secret. `part` occurs in every match and is quick to search for."""

    part: bytes
    pattern: bytes  # compiled only where `part` occurs: compiling takes 30 ms for a token of 1 KiB


class SentSecrets:
    def __init__(self, *secrets: str) -> None:
        """Ignores secrets shorter than SHORTEST characters."""
        longest_first = sorted({secret for secret in secrets if len(secret) >= SHORTEST}, key=len, reverse=True)
        self._forms = [form for secret in longest_first for form in _forms(secret.encode())]

    def cut(self, answer: bytes) -> bytes:
        """Returns the answer without the secrets, in linear time."""
        for form in self._forms:
            if form.part in answer:
                answer = re.sub(form.pattern, CUT, answer)
        return answer

    def cut_text(self, text: str) -> str:
        """Returns the text without the secrets. Call it before truncating: half a secret is not found."""
        return self.cut(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def _forms(secret: bytes) -> list[_Form]:
    cores = {_base64_within(secret, place) for place in range(3)}
    encoded = (_form(core, around=_BASE64 + b"?", after=b"={0,2}") for core in sorted(cores, key=len, reverse=True))
    return [*encoded, _form(secret)]


def _form(text: bytes, *, around: bytes = b"", after: bytes = b"") -> _Form:
    spelling = b"".join(_spellings_of(run) for run in _RUNS.findall(text))
    part = max(_PLAIN.findall(text), key=len, default=b"")
    return _Form(part, around + spelling + around + after)


def _spellings_of(run: bytes) -> bytes:
    """Returns the pattern of one character, or of a run of backslashes, plain or escaped up to three times.

    Letters and digits are never escaped. A run is one unit, so that a row of backslashes has one way to match.
    """
    literal, length = run[:1], len(run)
    if literal.isalnum():
        return literal
    hexed = b"(?i:%02x)" % ord(literal)
    named = codepoint2name.get(ord(literal), "apos" if literal == b"'" else "#").encode()  # &#; is nothing
    spellings = [
        rb"\\{1,7}u00" + hexed,
        rb"\\{1,7}x" + hexed,
        b"%(?:25){0,2}" + hexed,
        b"&(?:amp;){0,2}(?:#0*%d|#[xX]0*%b|%b);" % (ord(literal), hexed, named),
        *({b"+": [b"-"], b"/": [b"_"], b" ": [rb"\+"]}.get(literal, [])),  # base64url, and a form's space
    ]
    plain = rb"\\{%d,%d}" % (length, 8 * length) if literal == b"\\" else rb"\\{0,7}" + re.escape(literal)
    return b"(?:(?:%b){%d}|%b)" % (b"|".join(spellings), length, plain)


def _base64_within(secret: bytes, place: int) -> bytes:
    """Returns the Base64 characters of a secret that starts at a byte offset of `place` modulo 3."""
    length = (place + len(secret)) * 8 // 6
    return b64encode(bytes(place) + secret)[-(-place * 8 // 6) : length]
