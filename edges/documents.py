"""YAML documents that people write: parsed within limits on size and depth, with problems reported by line."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import yaml

# Plain Python parses a document within these limits in a fifth of a second.
LARGEST_BYTES = 65_536  # 300 usual pools, or a plan of 50 stages
MOST_EVENTS = 4_000  # keys, values, and the starts and ends of lists and mappings
DEEPEST = 20
MOST_PROBLEMS = 50  # reported at once
BRACKETS = re.compile(r"[\[\]{}\n]")
TOO_LARGE = f"The file is larger than {LARGEST_BYTES // 1024} KiB."
NESTED = "Aliases (*) and deeply nested values are not supported."
STRING, INTEGER, FLOAT, NULL, BOOLEAN = (
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "null", "bool")
)


@dataclass(frozen=True)
class FileProblem:
    line: int  # the first is 1
    sentence: str


class BadDocument(Exception):
    """The refusal of a document. No part of the document is applied."""

    def __init__(self, problems: Sequence[FileProblem]) -> None:
        problems = sorted(problems, key=lambda problem: problem.line)
        if left := max(0, len(problems) - MOST_PROBLEMS):
            problems = [
                *problems[:MOST_PROBLEMS],
                FileProblem(problems[MOST_PROBLEMS].line, f"{left} more problems follow."),
            ]
        super().__init__(" ".join(f"Line {problem.line}: {problem.sentence}" for problem in problems))
        # The form in which every refusal reports the problems of a field.
        self.problems = [{"field": f"line {problem.line}", "sentence": problem.sentence} for problem in problems]
        self.lines = problems


class _Bounded(yaml.SafeLoader):
    """A YAML loader that counts events while it reads, and refuses aliases: an alias can expand without limit."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.events = self.depth = 0

    def get_event(self) -> yaml.Event:
        event = super().get_event()
        self.events += 1
        self.depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent) or self.depth > DEEPEST:
            raise BadDocument([FileProblem(line, NESTED)])
        if self.events > MOST_EVENTS:
            raise BadDocument([FileProblem(line, f"The file has more than {MOST_EVENTS} keys, values and lists.")])
        return event


def compose(text: str, *, begins: str) -> yaml.Node:
    """Returns the text as nodes that know their line. `begins` is the first key of such a document.

    :raises BadDocument: when the text is too large or is not YAML
    """
    _refuse_large(text)
    try:
        root = yaml.compose(text, Loader=_Bounded)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        sentence = f"This is not YAML: {error.problem or error.context}."
        raise BadDocument([FileProblem(mark.line + 1 if mark else 1, sentence)]) from error
    except BadDocument:
        raise
    except Exception as error:  # an escape of no character raises ValueError; other releases may raise others
        raise BadDocument([FileProblem(1, f"This is not YAML: {str(error)[:200]}")]) from error
    if root is None:
        raise BadDocument([FileProblem(1, f"The file is empty. It must begin with “{begins}:”.")])
    return root


def text_of(content: bytes) -> str:
    """Returns the text of a file. A caller may pass only the first LARGEST_BYTES + 1 bytes of it.

    :raises BadDocument: when the file is too large or is not UTF-8
    """
    if len(content) > LARGEST_BYTES:
        raise BadDocument([FileProblem(1, TOO_LARGE)])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadDocument([FileProblem(1, "The file is not UTF-8 text.")]) from error


def line_of(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _refuse_large(text: str) -> None:
    """Refuses a large or deeply nested text before parsing: the parser looks ahead and walks up all open brackets."""
    if len(text) > LARGEST_BYTES or len(text.encode("utf-8", "replace")) > LARGEST_BYTES:
        raise BadDocument([FileProblem(1, TOO_LARGE)])
    line, depth = 1, 0
    for match in BRACKETS.finditer(text):
        if match[0] == "\n":
            line, depth = line + 1, 0
            continue
        depth = max(0, depth + (1 if match[0] in "[{" else -1))
        if depth > DEEPEST:
            raise BadDocument([FileProblem(line, NESTED)])
