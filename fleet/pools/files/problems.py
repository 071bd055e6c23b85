"""What is wrong with a pool file, line by line."""

from collections.abc import Sequence
from dataclasses import dataclass

MOST_PROBLEMS = 50  # that are told at once


@dataclass(frozen=True)
class FileProblem:
    line: int  # the first is 1
    sentence: str


class BadPoolFile(Exception):
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
