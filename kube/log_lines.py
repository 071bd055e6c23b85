"""Which line of a log says why a program ended: its last one is a stack frame or good advice as often. Pure.

Levels are written as logrus and slog do (`level=fatal`, `level=ERROR`, `"level":"error"`), as klog does (`F1204 …`,
`E1204 …`: k8s.io/klog), and as programs do that name themselves first (`modprobe: ERROR: …`; apt: `E: …`). A crash of
Go's begins with `panic: ` or `fatal error: `, and what follows are its goroutines (runtime/panic.go, traceback.go).
"""

import re
from collections.abc import Sequence
from enum import IntEnum
from itertools import groupby

LOOKED_AT = 400  # characters of a line: what it is about, it says there


class LineWeight(IntEnum):
    """How much a line says of why a program ended."""

    NOTHING = 0  # a stack frame, a ruler, advice
    ASIDE = 1  # it goes on with what the line before it said
    PLAIN = 2
    NOTED = 3  # it is only for information, and has the words of something that went wrong
    WARNING = 4
    WORDED = 5  # it says no level, and has such words
    ERROR = 6
    FATAL = 7


FRAME = re.compile(
    r"""^\s*(?:
        goroutine\ \d+\ .{0,60}\[.*\]:                         # goroutine 1 [running]:
      | created\ by\ \S+(?:\ in\ goroutine\ \d+)?
      | panic\(.*\) | \[?recovered\]? | \.\.\..{0,20}frames\ elided\.* | exit\ status\ \d+
      | \S+\.(?:go|s|c|cc|cpp|h|py|rs):\d+(?:\ \+0x[0-9a-f]+)?   # /usr/local/go/src/runtime/panic.go:770 +0x132
      | [\w./~*()@%\[\]-]+\((?:\.\.\.|[0-9a-fx?_,\s{}.]*)\)      # main.(*plugin).Start(0xc000112000)
      | [\w./-]+\.\(\*\w+\)\.[\w.]+                             # main.(*plugin).Start
      | [\w-]+\.(?:com|io|org|in)/[\w./~-]+\.\w+                # github.com/urfave/cli/v2.HandleAction
      | (?:main|runtime|syscall|reflect|net/http)\.[\w.]+
      | [re]?[a-ds][xip]l?\s+0x[0-9a-f]+ | (?:r\d+|[re]?[bs]p|[re]?flags|[cfg]s)\s+0x[0-9a-f]+
      | PC=0x.* | \#\d+\ +0x[0-9a-f]+.* | \S+\(.*\)\s?\[0x[0-9a-f]+\]
      | File\ "[^"]*",\ line\ \d+.* | Traceback\ \(most\ recent\ call\ last\):
    )\s*$""",
    re.VERBOSE,
)
RULER = re.compile(r"^[\s|+=*_#.~-]*$")


def any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


ADVICE = any_of(
    r"\bif this is (?:not )?a gpu node\b",
    r"\byou can (?:check|learn)\b",
    r"\bplease (?:see|refer|visit|check)\b",
    r"\bfor more (?:details|information)\b",
    r"\bis required to address\b",
    r"^\s*https?://\S+$",
)
ECHOED = re.compile(r"\++ ")  # a shell's own trace of what it runs (set -x)
TRACED = any_of(r"[,\s]+\"?stack_?trace\"?[=:]")  # from here on a line only has its stack
GENERAL = any_of(r"encountered a failure\b", r"observed a panic\b")  # of what, says the line after it
FATAL = any_of(
    r"(?:^|\s)panic: ",
    r"^fatal(?: error)?: ",
    r"\blevel=\"?(?:fatal|panic)\b",
    r"\"level\": ?\"d?(?:panic|fatal)\"",
    r"^F\d{4} \d\d:",
    r"^(?:FATA|PANI)\[",
    r"(?:^|[\]:\s])(?-i:FATAL)[:\s]",
    r"^\[?(?:signal )?SIG(?:SEGV|BUS|ABRT|ILL)\b",
)
ERROR = any_of(
    r"\blevel=\"?err(?:or)?\b",
    r"\"level\": ?\"err(?:or)?\"",
    r"^E\d{4} \d\d:",
    r"^ERRO\[",
    r"^E: ",
    r"(?:^|[\]:\s\"*(])Err(?:or)?: ",
    r"(?:^|[\[\s-])(?-i:ERROR)[\]:\s]",
    r"^[\w.]+(?:Error|Exception): ",
    r"^[\w./-]+: .{0,80}\berror\b",
    r"\*\*\* .{0,200}\berror \d",
)
WARNING = any_of(
    r"\blevel=\"?warn",
    r"\"level\": ?\"warn",
    r"^W\d{4} \d\d:",
    r"^WARN\[",
    r"^Warning\b",
    r"(?:^|[\[\s-])(?-i:WARN(?:ING)?)[\]:\s]",
)
NOTE = any_of(
    r"\blevel=\"?(?:info|debug)",
    r"\"level\": ?\"(?:info|debug)",
    r"^I\d{4} \d\d:",
    r"^(?:INFO|DEBU)\[",
    r"(?:^|[\[\s-])(?-i:INFO)[\]:\s]",
)
WORDS = any_of(
    r"\b(?:fail(?:ed|ure|s)?|cannot|can't|could ?n[o']t|unable|refus\w+|denied|invalid|no such|unbound|timed? ?out)\b",
    r"\bnot (?:found|supported|permitted|allowed|loaded|ready)\b",
    r"\b(?:deadline exceeded|unsupported|missing|killed|aborting|insufficient|mismatch|exceptions?|errors?)\b",
    r"\b(?:segfault|segmentation|no space left|does not exist)\b",
)


def telling(lines: Sequence[str]) -> str:
    """The line that says why. Blank: none says anything."""
    at = told_at(lines)
    return "" if at is None else _untraced(lines[at]).strip()


def told_at(lines: Sequence[str]) -> int | None:
    """Where it is: of the last lines in a row that weigh most the first, as a cause comes before what it led to.

    Of lines that name no trouble the last.
    """
    weighed = [(each, at) for at, line in enumerate(lines) if (each := weight(line))]
    most = max((each for each, _ in weighed), default=None)
    runs = [(each, [at for _, at in run]) for each, run in groupby(weighed, lambda pair: pair[0])]
    found = next((ats for each, ats in reversed(runs) if each is most), [None])
    return found[0] if most and most > LineWeight.PLAIN else found[-1]


def weight(line: str) -> LineWeight:
    line, whole = _untraced(line)[:LOOKED_AT], line
    if is_frame(line) or ADVICE.search(line):
        return LineWeight.NOTHING
    if ECHOED.match(line) or (TRACED.search(whole) and GENERAL.search(line)):
        return LineWeight.ASIDE
    for pattern, level in ((FATAL, LineWeight.FATAL), (ERROR, LineWeight.ERROR), (WARNING, LineWeight.WARNING)):
        if pattern.search(line):
            return level
    if line[0].isspace() or line.startswith("- "):
        return LineWeight.ASIDE
    if not WORDS.search(line):
        return LineWeight.PLAIN
    return LineWeight.NOTED if NOTE.search(line) else LineWeight.WORDED


def _untraced(line: str) -> str:
    found = TRACED.search(line)
    return line[: found.start()] if found else line


def is_frame(line: str) -> bool:
    """Of a stack, or of a table: it says nothing of what happened."""
    return bool(RULER.match(line) or FRAME.match(line[:LOOKED_AT]))
