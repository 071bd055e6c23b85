"""Redaction of likely secrets in program output, before it is stored or shown. Pure.

Redacts rather too much: long strings of letters and digits carry little meaning in a log. GPU UUIDs and image
digests stay, since they are names. Each pattern scans a word once, whatever its length.
"""

import re

REDACTED = "[redacted]"
IS_REDACTED = r"\[redacted\](?:[\"',}\s]|$)"  # by an earlier pattern
NAMES = (
    r"pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|authorization"
)
HEADER = r"[\w-]*(?:authorization|cookies?)"

PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    # Authorization: token …, "Set-Cookie: …", "authorization": "…": to the closing quote, or to the end of the line
    (
        re.compile(
            rf"([\"'])({HEADER}\s*[=:]\s*)(?:(?!\1).)+"
            rf"|((?<![\w-]){HEADER}[\"']\s*[=:]\s*)(?:\"[^\"]*\"|'[^']*'|.+)"
            rf"|((?<![\w-]){HEADER}[\\\"']*\s*[=:]\s*).+",
            re.IGNORECASE,
        ),
        rf"\1\2\3\4{REDACTED}",
    ),
    (re.compile(r"-----BEGIN [A-Z ]*-----.*"), REDACTED),
    (re.compile(r"(\b[a-z][a-z0-9+.-]{0,30}://)[^/\s@]+@", re.IGNORECASE), rf"\1{REDACTED}@"),
    (re.compile(r"\b(bearer|basic|negotiate)\s+(?=\S*[\d=])[A-Za-z0-9+/=._~-]{6,}", re.IGNORECASE), rf"\1 {REDACTED}"),
    # password=…, "clientSecret": "…", --token …, MY_API_KEY=…
    (
        re.compile(
            rf"((?<![\w.-])(?=[\w.-]*(?:{NAMES}))[\w.-]++[\"']?\s*[=:]\s*)"
            rf"(\"[^\"]*\"|'[^']*'|(?!{IS_REDACTED})[^\s,;&]+)",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    (
        re.compile(rf"((?<![\w-])(?=(?>[\w-]*?--)[\w-]*(?:{NAMES}))[\w-]++\s++)[^\s-]\S*", re.IGNORECASE),
        rf"\1{REDACTED}",
    ),
    (re.compile(r"\beyJ[\w-]{8,}+\.[\w-]*\.?[\w-]*"), REDACTED),  # a JSON web token
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{12,}"), REDACTED),
    (re.compile(r"\b(?:nvapi-|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|dckr_[a-z]at_)[\w-]{8,}"), REDACTED),
    (re.compile(r"\bsk-[\w-]{16,}"), REDACTED),
)
LONG = re.compile(r"(?<![\w:+/-])[A-Za-z0-9+/_]{32,}={0,2}(?![\w-])")


def redacted(line: str) -> str:
    for pattern, instead in PATTERNS:
        line = pattern.sub(instead, line)
    return LONG.sub(_unless_a_path, line)


def _unless_a_path(match: re.Match[str]) -> str:
    """Keeps paths made of words; redacts long mixed strings."""
    text = match.group()
    is_words = all(part.isalpha() or len(part) < 16 for part in re.split(r"[/_+]", text))
    return text if is_words and "=" not in text else REDACTED
