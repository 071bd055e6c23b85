"""Documents that people keep as YAML: composed within bounds that hold before the parser sees the text and while it
reads, and what is wrong with one, line by line."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import yaml

# What plain Python reads in a fifth of a second, whatever it is made of.
LARGEST_BYTES = 65_536  # 300 usual pools, or a plan of 50 stages
MOST_EVENTS = 4_000  # keys, values, and where lists and mappings begin and end
DEEPEST = 20
MOST_PROBLEMS = 50  # that are told at once
BRACKETS = re.compile(r"[\[\]{}\n]")
TOO_LARGE = f"The file is larger than {LARGEST_BYTES // 1024} KiB."
NESTED = "Aliases (*) and deep nests are not read here."
STRING, INTEGER, FLOAT, NULL, BOOLEAN = (
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "null", "bool")
)


@dataclass(frozen=True)
class FileProblem:
    line: int  # the first is 1
    sentence: str


class BadDocument(Exception):
    """Nothing of it is taken over."""

    def __init__(self, problems: Sequence[FileProblem]) -> None:
        told = sorted(problems, key=lambda each: each.line)
        if left := max(0, len(told) - MOST_PROBLEMS):
            told = [
                *told[:MOST_PROBLEMS],
                FileProblem(told[MOST_PROBLEMS].line, f"From here on {left} more are wrong."),
            ]
        super().__init__(" ".join(f"Line {each.line}: {each.sentence}" for each in told))
        # As every refusal tells what is wrong with which field.
        self.problems = [{"field": f"line {each.line}", "sentence": each.sentence} for each in told]
        self.lines = told


class _Bounded(yaml.SafeLoader):
    """Counts what it reads while it reads it. An alias could stand for any number of nodes: there are none."""

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
    """The text as nodes that know their line. `begins`: the first key of such a document.

    :raises BadDocument: when it is too large, or no YAML
    """
    _refuse_large(text)
    try:
        root = yaml.compose(text, Loader=_Bounded)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = f"This is no YAML: {error.problem or error.context}."
        raise BadDocument([FileProblem(mark.line + 1 if mark else 1, said)]) from error
    except BadDocument:
        raise
    except Exception as error:  # an escape of no character is a ValueError, and the next release may have others
        raise BadDocument([FileProblem(1, f"This is no YAML: {str(error)[:200]}")]) from error
    if root is None:
        raise BadDocument([FileProblem(1, f"The file is empty. It begins with “{begins}:”.")])
    return root


def text_of(content: bytes) -> str:
    """Of a file, or of no more of it than tells that it is too large.

    :raises BadDocument: when it is too large, or no text
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
    """Before the parser sees it. Within a line it reads ahead, and for each character walks up all open brackets."""
    if len(text) > LARGEST_BYTES or len(text.encode("utf-8", "replace")) > LARGEST_BYTES:
        raise BadDocument([FileProblem(1, TOO_LARGE)])
    line, depth = 1, 0
    for found in BRACKETS.finditer(text):
        if found[0] == "\n":
            line, depth = line + 1, 0
            continue
        depth = max(0, depth + (1 if found[0] in "[{" else -1))
        if depth > DEEPEST:
            raise BadDocument([FileProblem(line, NESTED)])
