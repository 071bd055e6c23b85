"""What looks like a secret in a line that a program wrote, taken out before anybody keeps or shows it. Pure.

Too much is taken rather than too little: a log is read for its words, not for its long strings of letters and digits.
GPU UUIDs and image digests stay: they are names. Each pattern looks at a word once, however long that is.
"""

import re

GONE = "[redacted]"
NAMES = (
    r"pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|authorization"
)

PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z ]*-----.*"), GONE),
    (re.compile(r"(\b[a-z][a-z0-9+.-]{0,30}://)[^/\s@]+@", re.IGNORECASE), rf"\1{GONE}@"),
    (re.compile(r"\b(bearer|basic|negotiate)\s+(?=\S*[\d=])[A-Za-z0-9+/=._~-]{6,}", re.IGNORECASE), rf"\1 {GONE}"),
    # password=…, "clientSecret": "…", --token …, MY_API_KEY=…
    (
        re.compile(
            rf"((?<![\w.-])(?=[\w.-]*(?:{NAMES}))[\w.-]++[\"']?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s,;&]+)",
            re.IGNORECASE,
        ),
        rf"\1{GONE}",
    ),
    (
        re.compile(rf"((?<![\w-])(?=(?>[\w-]*?--)[\w-]*(?:{NAMES}))[\w-]++\s++)[^\s-]\S*", re.IGNORECASE),
        rf"\1{GONE}",
    ),
    (re.compile(r"\beyJ[\w-]{8,}+\.[\w-]*\.?[\w-]*"), GONE),  # a JSON web token
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{12,}"), GONE),
    (re.compile(r"\b(?:nvapi-|gh[pousr]_|github_pat_|glpat-|xox[a-z]-)[\w-]{8,}"), GONE),
)
LONG = re.compile(r"(?<![\w:+/-])[A-Za-z0-9+/_]{32,}={0,2}(?![\w-])")


def redacted(line: str) -> str:
    for pattern, instead in PATTERNS:
        line = pattern.sub(instead, line)
    return LONG.sub(_unless_a_path, line)


def _unless_a_path(found: re.Match[str]) -> str:
    """Words between slashes are a path; letters and digits in one piece are what nobody reads."""
    text = found.group()
    is_words = all(piece.isalpha() or len(piece) < 16 for piece in re.split(r"[/_+]", text))
    return text if is_words and "=" not in text else GONE
