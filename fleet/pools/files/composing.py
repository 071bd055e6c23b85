"""YAML into nodes that know their line, within bounds that hold before the parser sees it and while it reads."""

import re

import yaml

from fleet.pools.files.problems import BadPoolFile, FileProblem

# What plain Python reads in a fifth of a second, whatever it is made of.
LARGEST_BYTES = 65_536  # 300 usual pools
MOST_EVENTS = 4_000  # keys, values, and where lists and mappings begin and end
DEEPEST = 20
BRACKETS = re.compile(r"[\[\]{}\n]")
NESTED = "Aliases (*) and deep nests are not read here."


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
            raise BadPoolFile([FileProblem(line, NESTED)])
        if self.events > MOST_EVENTS:
            raise BadPoolFile([FileProblem(line, f"The file has more than {MOST_EVENTS} keys, values and lists.")])
        return event


def compose(text: str) -> yaml.Node:
    """The file as nodes that know their line."""
    _refuse_large(text)
    try:
        root = yaml.compose(text, Loader=_Bounded)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = f"This is no YAML: {error.problem or error.context}."
        raise BadPoolFile([FileProblem(mark.line + 1 if mark else 1, said)]) from error
    except BadPoolFile:
        raise
    except Exception as error:  # an escape of no character is a ValueError, and the next release may have others
        raise BadPoolFile([FileProblem(1, f"This is no YAML: {str(error)[:200]}")]) from error
    if root is None:
        raise BadPoolFile([FileProblem(1, "The file is empty. It begins with “pools:”.")])
    return root


def _refuse_large(text: str) -> None:
    """Before the parser sees it. Within a line it reads ahead, and for each character walks up all open brackets."""
    if len(text) > LARGEST_BYTES or len(text.encode("utf-8", "replace")) > LARGEST_BYTES:
        raise BadPoolFile([FileProblem(1, f"The file is larger than {LARGEST_BYTES // 1024} KiB.")])
    line, depth = 1, 0
    for found in BRACKETS.finditer(text):
        if found[0] == "\n":
            line, depth = line + 1, 0
            continue
        depth = max(0, depth + (1 if found[0] in "[{" else -1))
        if depth > DEEPEST:
            raise BadPoolFile([FileProblem(line, NESTED)])
