"""The line of a log that explains why a program ended. The last line is often a stack frame or general advice. Pure.

Recognized levels are those of logrus and slog (`level=fatal`, `level=ERROR`, `"level":"error"`), klog (`F1204 …`,
`E1204 …`: k8s.io/klog), and of programs that print their name first (`modprobe: ERROR: …`; apt: `E: …`). A Go crash
begins with `panic: ` or `fatal error: `, followed by its goroutines (runtime/panic.go, traceback.go).
"""

import re
from collections.abc import Sequence
from enum import IntEnum
from itertools import groupby, pairwise

from kube.boilerplate import without_boilerplate

LONGEST = 4096  # characters of a line that are read: the length of a termination message
SCANNED = 400  # characters of a line; its meaning is at the beginning


class LineWeight(IntEnum):
    """The weight of a line as an explanation."""

    NOTHING = 0  # a stack frame, a ruler, advice
    ASIDE = 1  # continues the line before it
    PLAIN = 2
    NOTED = 3  # an informational line with words of a failure
    WARNING = 4
    SECONDHAND = 5  # reports the end of another process, or only that something failed
    WORDED = 6  # no level, but words of a failure
    ERROR = 7
    FATAL = 8


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
      | frame\ \#\d+:\ .* | Exception\ raised\ from\ .+       # of torch
      | File\ "[^"]*",\ line\ \d+.* | Traceback\ \(most\ recent\ call\ last\):
    )\s*$""",
    re.VERBOSE,
)
RULER = re.compile(r"^[\s|+=*_#.~-]*$")


def any_pattern(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


ADVICE = any_pattern(
    r"\bif this is (?:not )?a gpu node\b",
    r"\byou can (?:check|learn)\b",
    r"\bplease (?:see|refer|visit|check)\b",
    r"\bfor more (?:details|information)\b",
    r"\blist of known hosts\b",
    r"^permission denied, please try again",
    r"\bis required to address\b",
    r"^this (?:is )?usually (?:is )?(?:due|caused)\b",  # of Open MPI
    r"^\s*https?://\S+$",
    r"\bwhen one has already been registered\b",  # of TensorFlow, in a program that works
)
# "RuntimeError: …", also after a prefix; the advice that follows in the line does not matter.
EXCEPTION = re.compile(r"(?:^|[\]\s(:|])[A-Za-z_][\w.]{0,80}(?:Error|Exception): \S")
# Prefix of a program that relays lines of another: its log level is before each line.
RELAYED = re.compile(r"^[\w .-]{1,40}(?:error|stderr): {2,}", re.IGNORECASE)
# An exception without a message, and the header of its traceback.
UNSAID = re.compile(
    r"^\s*(?:[\w.]*(?:Error|Exception):?|.{0,80}\bwith the following (?:error|exception)s?:|[\w ()-]{1,60}:"
    r"|.{0,120}\bWorkerProc failed to start\.)\s*$"
)
ECHOED = re.compile(r"\++ ")  # a shell's trace of its commands (set -x)
TRACED = any_pattern(r"(?<![,\s])[,\s]+\"?stack_?trace\"?[=:]")  # the rest of the line is a stack trace
GENERAL = any_pattern(r"encountered a failure\b", r"observed a panic\b")  # the next line has the details
# A process or a rank before the line (torchrun, vLLM, Ray, mpirun), and vLLM's own head of each line of a traceback.
PROCESS = re.compile(
    r"""(?:
        \[(?:rank|Rank)\ ?\d+\]:?\ ?
      | \([\w.:/\ -]{1,60}\b(?:pid|rank)[=\ ]\d+[^)]{0,40}\)\ ?
      | \[\d+(?:,\d+)?\]\ ?<std(?:err|out)>:\ ?
      | \d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:\d\d)\ std(?:err|out)\ [FP]\   # of a container runtime (CRI)
      | (?:ERROR|CRITICAL)\ \d\d-\d\d\ \d\d:\d\d:\d\d\ \[[^\]]{1,80}\]
        [ ](?=[ ]|[\w\ ]{0,60}\b(?:Error|Exception)\b|Traceback|$)
    )*""",
    re.VERBOSE,
)
# A parent process reports the end of its child; the child's own message explains it, if the log has it.
SECONDHAND = any_pattern(
    r"\btraceback \(most recent call last\):\s*$",
    r"\bfailed to load all models\b",
    r"^\S+ failed$",
    r"^(?:hsa api call failure at|call returned hsa_status_)",  # of rocminfo; the line before says why
    r"\bnon-zero exit (?:code\. per user-direction|status 1\b)",
    r"\bprimary job\s+terminated normally",
    r"\bgot completion .{0,160}\b(?:error|status)[= (]{1,3}5\b",  # of a connection that was closed before
    r"\bexits with return code = 1\b",
    r"\bplease report this issue to the nccl developers\b",
    r"\bncclinternalerror: internal check failed\b",
    r"\bncclunhandledcudaerror: call to cuda function failed",
    r"\b(?:unhandled (?:cuda|system) error|remote process exited or there was a network error)\b.{0,80}\bnccl version",
    r"\breceived sigquit from a child process",
    r"^(?:error: )?(?:shardcannotstart|downloaderror|webserverfailed)$",
    r"\bchildfailederror:",
    r"\b(?:runner|worker|engine|shard|child) process (?:has |was )?(?:terminated|died|exited|crashed)\b(?!.*: )",
    r"\bworker proc \S+ died unexpectedly",
    r"\b(?:rayactorerror|actordiederror|actorunavailableerror): the actor died unexpectedly",
    r"\bfailed \(exitcode: \d",
    r"\broot error\(s\) found",
    r"\brun with NCCL_DEBUG=INFO for details",
    r"\bsee (?:root cause|stack trace|the (?:root cause|stack trace)) (?:above|below|for)",
)
# The end of a child by a signal, as torchelastic lists it: that is an explanation.
SIGNALLED = any_pattern(r"\bexitcode\s*: (?:-\d|1[23]\d\b)", r"\bsignal \d+ \(sig\w+\) received by pid")
# the next line has the message
ANNOUNCING = re.compile(r"^\W*(?:last error|root cause|caused by|reason):\s*$", re.IGNORECASE)
TOLD = re.compile(r"\w{2,}\W+\w{2,}")
# The message of a structured line: klog's err="…", the field error of JSON, then the message.
STRUCTURED = tuple(
    re.compile(pattern)
    for pattern in (
        r"\s(?:err|error)=\"(?P<text>(?:[^\"\\]|\\.)+)\"",
        r"\"err(?:or)?\": ?\"(?P<text>(?:[^\"\\]|\\.)+)\"",
        r"\bmsg=\"(?P<text>(?:[^\"\\]|\\.)+)\"",
        r"\"(?:msg|message)\": ?\"(?P<text>(?:[^\"\\]|\\.)+)\"",
        r"\bmsg=(?P<text>[^\"].*)$",
    )
)
# Before the message: times, levels, threads and the place in the source, in any order.
LEAD = re.compile(
    r"""(?:(?:
        \[?\d{4}[-/]\d\d[-/]\d\d[T ]\S+
      | \d\d:\d\d:\d\d\S* | (?:UTC|GMT) | \]
      | [IWEF]\d{4}\ \d\d:\d\d:\d\d[.\d]*(?:\ +\d+)?(?:\ +[\w.-]+:\d+\])?
      | \[[A-Z][a-z]{2}\ \d\d\ \d{4}\ \S+\] | \[tid\ \d+\] | \[\d+:\d+\] | \[\s*\d+\.\d+\]
      | [\[(]?(?:INFO|WARN(?:ING)?|ERRO|ERR(?:OR)?|FATAL?|DEBU?G?|E|Error(?=:))[\])]?(?:\[\d+\])?(?=[:\s\]]):?
    )\s*)+""",
    re.VERBOSE,
)
# Removed from the end: the source position (DCGM), escaped line ends and quotes, additions of containerd and the
# kubelet.
TRAIL = re.compile(r"(?:\s*\[/\S+:\d+\].*|[\\\"]n?|: unknown|, which is unexpected|[;.\s])+$")
SHORTEST = 25  # characters of an end that tells something alone
ADDRESS = re.compile(r"https?://\S+$")
FATAL = any_pattern(
    r"(?:^|\s)panic: ",
    r"^fatal(?: error)?: ",
    r"\blevel=\"?(?:fatal|panic)\b",
    r"\"level\": ?\"d?(?:panic|fatal)\"",
    r"^F\d{4} \d\d:",
    r"^(?:FATA|PANI)\[",
    r"(?:^|[\]:\s])(?-i:FATAL)[:\s]",
    r"^\[?(?:signal )?SIG(?:SEGV|BUS|ABRT|ILL)\b",
    r"^\s*what\(\):\s+\S",  # of C++, before the signal that it raises
)
ERROR = any_pattern(
    r"\blevel=\"?err(?:or)?\b",
    r"\"level\": ?\"err(?:or)?\"",
    r"^E\d{4} \d\d:",
    r"^ERRO\[",
    r"^E: ",
    r"^curl: \(\d+\) ",
    r"(?:^|[\]:\s\"*(])Err(?:or)?: ",
    r"(?:^|[\[\s-])(?-i:ERROR)[\]:\s]",
    r"^[\w.]+(?:Error|Exception): ",
    r"^[\w./-]+: .{0,80}\berror\b",
    r"\*\*\* .{0,200}\berror \d",
    r": E \S{1,200}:\d+\] ",  # TensorFlow, XLA
    r"\bsignal \d+ \(SIG\w+\)",  # torch, of a worker
    r"\bNCCL WARN (?!.*libibverbs)",  # the name of NCCL's errors; without libibverbs it uses sockets
)
WARNING = any_pattern(
    r"\blevel=\"?warn",
    r"\"level\": ?\"warn",
    r"^W\d{4} \d\d:",
    r"^WARN\[",
    r"^Warning\b",
    r"(?:^|[\[\s-])(?-i:WARN(?:ING)?)[\]:\s]",
    r"^\[(?:HAMI-core|4pdvGPU) Warn\b",
    r"(?:^|[\s:])(?-i:[A-Z][A-Za-z]{2,30}Warning): ",  # of Python
)
NOTE = any_pattern(
    r"\blevel=\"?(?:info|debug)",
    r"\"level\": ?\"(?:info|debug)",
    r"^I\d{4} \d\d:",
    r"^(?:INFO|DEBU)\[",
    r"(?:^|[\[\s-])(?-i:INFO)[\]:\s]",
    r"^terminate called after throwing",  # the next line has the reason
)
WORDS = any_pattern(
    r"\b(?:fail(?:ed|ure|s)?|cannot|can't|could ?n[o']t|unable|refus\w+|denied|invalid|no such|unbound|timed? ?out)\b",
    r"\bnot (?:found|supported|permitted|allowed|loaded|ready)\b",
    r"\b(?:deadline exceeded|unsupported|missing|killed|aborting|insufficient|mismatch|exceptions?|errors?)\b",
    r"\b(?:err|errno|status=[1-9]\d*)\b",
    r"\blost (?:communication|connection|contact)\b",
    r"\b(?:illegal instruction|core dumped|signal: \w+)\b",
    r"\b(?:segfault|segmentation|no space left|does not exist|out of memory|crashed|aborted|signal \d+)\b",
)
LEVELS = (
    (SIGNALLED, LineWeight.WORDED),
    (SECONDHAND, LineWeight.SECONDHAND),
    (UNSAID, LineWeight.ASIDE),
    (FATAL, LineWeight.FATAL),
    (ERROR, LineWeight.ERROR),
    (WARNING, LineWeight.WARNING),
    (EXCEPTION, LineWeight.ERROR),
)


ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)|[\x00-\x08\x0b-\x1f\x7f]")


def as_shown(line: str) -> str:
    """Returns a line as a terminal shows it: without colours, and the last text that was written over it."""
    return ESCAPES.sub("", line.rstrip("\r").rpartition("\r")[2]).rstrip()


def decisive_line(lines: Sequence[str]) -> str:
    """Returns the line that explains the end. Blank: there is none."""
    index = decisive_index(lines)
    return "" if index is None else _untraced(lines[index]).strip()


def other_lines(lines: Sequence[str], most: int) -> list[str]:
    """Returns further lines about a failure, the heaviest and nearest to the decisive line first.

    A line without words of a failure is left out: it may have a secret or data of the program.
    """
    index = decisive_index(lines)
    if index is None:
        return []
    decisive = _plain(lines[index]).strip()
    weighed = [(weight(line), at, line) for at, line in enumerate(lines)]
    telling = [entry for entry in weighed if entry[0] >= LineWeight.WORDED]
    ranked = sorted(telling, key=lambda entry: (-entry[0], abs(entry[1] - index)))
    distinct = dict.fromkeys(_plain(_untraced(line)).strip() for _, _, line in ranked)
    return [line for line in distinct if line != decisive][:most]


def decisive_index(lines: Sequence[str]) -> int | None:
    """Returns its index: the first of the last run of heaviest lines, since a cause precedes its consequences.

    A line such as "Last error:" (torch, of NCCL) announces it.

    Without any line about a failure: the last line.
    """
    announced = [
        index + 1
        for index, (line, following) in enumerate(pairwise(lines))
        if ANNOUNCING.match(_plain(line)) and TOLD.search(following[:SCANNED]) and not is_frame(following)
    ]
    if announced:
        return announced[-1]
    weighed = [(line_weight, index) for index, line in enumerate(lines) if (line_weight := weight(line))]
    most = max((line_weight for line_weight, _ in weighed), default=None)
    runs = [(line_weight, [index for _, index in run]) for line_weight, run in groupby(weighed, lambda pair: pair[0])]
    indexes = next((ats for run_weight, ats in reversed(runs) if run_weight is most), [None])
    return indexes[0] if most and most > LineWeight.PLAIN else indexes[-1]


def message_of(line: str, longest: int) -> str:
    """Returns what a line says, without time, level and program, in at most so many characters.

    An error of Go names its reason last, after those of all its callers: of a longer one, the end is kept.
    """
    line = _untraced(line)[:LONGEST].strip()
    for pattern in STRUCTURED:
        if found := pattern.search(line):
            line = _unescaped(found["text"])
            break
    line = " ".join(line.split())
    lead = LEAD.match(line)
    line = TRAIL.sub("", line[lead.end() :] if lead else line) or line
    if len(line) <= longest:
        return line
    *callers, kept = line.split(": ")
    if callers and ADDRESS.match(kept):  # of a page to read: it tells nothing of this error
        while callers and ADDRESS.match(kept):
            kept = callers.pop()
        kept = f"{kept}:"
        line = ": ".join([*callers, kept])
        if len(line) <= longest:
            return line
    while callers and len(callers[-1]) + len(kept) + len(": … ") <= longest:
        kept = f"{callers.pop()}: {kept}"
    if callers and SHORTEST <= len(kept) <= longest - len("… "):
        return f"… {kept}"
    end = f"…: {kept}" if callers and len(kept) < SHORTEST else "…"  # a bare reason, such as "input/output error"
    return f"{line[: longest - len(end)].rstrip()}{end}"


def _unescaped(text: str) -> str:
    return text.replace('\\"', '"').replace("\\n", " ").replace("\\t", " ")


def weight(line: str) -> LineWeight:
    line, whole = without_boilerplate(_plain(_untraced(line))[:SCANNED]), line
    if not line.strip():
        return LineWeight.NOTHING
    if is_frame(line) or (ADVICE.search(line) and not EXCEPTION.search(line)):
        return LineWeight.NOTHING
    if ECHOED.match(line) or RELAYED.match(line) or (TRACED.search(whole) and GENERAL.search(line)):
        return LineWeight.ASIDE
    for pattern, level in LEVELS:
        if pattern.search(line):
            return level
    if line[0].isspace() or line.startswith("- "):
        return LineWeight.ASIDE
    if not WORDS.search(line):
        return LineWeight.PLAIN
    return LineWeight.NOTED if NOTE.search(line) else LineWeight.WORDED


def is_echo(line: str) -> bool:
    """Tells whether a shell wrote the line to trace a command: it quotes a message that may never be said."""
    return ECHOED.match(_plain(line)) is not None


def is_informational(line: str) -> bool:
    """Tells whether its program gave the line the level info or debug."""
    return NOTE.search(_plain(line)[:SCANNED]) is not None and weight(line) < LineWeight.WARNING


def _untraced(line: str) -> str:
    match = TRACED.search(line)
    return line[: match.start()] if match else line


def _plain(line: str) -> str:
    """The line without the process that wrote it."""
    match = PROCESS.match(line)
    return line[match.end() :] if match else line


def is_frame(line: str) -> bool:
    """Tells whether a line is part of a stack or a table, and so explains nothing."""
    line = _plain(line)
    return bool(RULER.match(line) or FRAME.match(line[:SCANNED]))
