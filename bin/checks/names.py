"""Check that modules are named by nouns and that docstrings open with a verb or a noun phrase."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from rooms import rooms

ROOT = Path(__file__).resolve().parents[2]
# Packages whose docstrings are not yet in plain English. Remove a package here once it passes.
NOT_YET = frozenset({"benchmarks", "bin", "demo", "deploy", "simulator"})
OPENINGS = frozenset(
    {
        "also", "and", "as", "at", "beside", "between", "but", "by", "each", "everything", "for", "from",
        "how", "if", "in", "inside", "into", "it", "its", "nobody", "nothing", "of", "on", "or", "so", "than",
        "that", "their", "them", "then", "there", "they", "this", "those", "to", "too", "under", "what",
        "whatever", "when", "where", "whether", "which", "while", "who", "whoever", "whom", "whose", "why",
        "with", "within", "without",
    }
)  # fmt: skip
NOUNS = frozenset({"binding", "finding", "pricing", "routing", "string", "throttling", "wording"})  # all nouns


def main() -> int:
    """Print each violation; return 1 if there is any."""
    problems = [problem for path in modules() for problem in (*bad_names(path), *bad_openings(path))]
    sys.stdout.write("".join(f"{problem}\n" for problem in problems))
    return 1 if problems else 0


def modules() -> Iterator[Path]:
    """Yield the modules of every converted package, without migrations and tests."""
    for room in sorted(set(rooms()) - NOT_YET):
        yield from (path for path in sorted((ROOT / room).rglob("*.py")) if "migrations" not in path.parts)


def bad_names(path: Path) -> Iterator[str]:
    """Yield a module or package whose name is a participle."""
    name = path.parent.name if path.stem == "__init__" else path.stem
    last = name.rpartition("_")[2]
    is_rule = path.parent.name == "rules"  # named by the key of its findings
    if last.endswith("ing") and last not in NOUNS and "management" not in path.parts and not is_rule:
        yield f"{path.relative_to(ROOT)}: “{name}” is a participle; name the module by a noun."


def bad_openings(path: Path) -> Iterator[str]:
    """Yield each docstring that opens with a fragment."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        words = (ast.get_docstring(node) or "").split(maxsplit=1)
        if words and words[0].strip("“”\"',.:;`").lower() in OPENINGS:
            line = node.body[0].lineno
            yield f"{path.relative_to(ROOT)}:{line}: a docstring opens with “{words[0]}”; open with a verb or a noun."


if __name__ == "__main__":
    sys.exit(main())
