import importlib.util
from types import ModuleType

import pytest

from tests.rooms import ROOT


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tables_check", ROOT / "bin" / "checks" / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_table_is_replaced_between_its_marks(tables):
    text = f"before\n{tables.mark('rules')}\nold\n<!-- end -->\nafter\n"

    assert tables.with_table(text, "rules", "new") == text.replace("old", "new")


def test_a_document_without_marks_is_an_error(tables):
    with pytest.raises(ValueError, match="lacks <!-- generated: rules"):
        tables.with_table("no table", "rules", "new")


def test_a_stale_table_fails_the_check_and_names_its_document(tables, tmp_path, monkeypatch, capsys):
    (tmp_path / "docs").mkdir()
    document = tmp_path / "docs" / "gates.md"
    document.write_text(f"{tables.mark('gates')}\nold\n<!-- end -->\n")
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    monkeypatch.setattr(tables, "TABLES", {"gates": ("docs/gates.md", tables.gates)})
    monkeypatch.setattr(tables.sys, "argv", ["tables.py"])

    assert tables.main() == 1
    assert "docs/gates.md: the table of gates differs" in capsys.readouterr().out
    assert "old" in document.read_text()


def test_writing_it_makes_the_check_pass(tables, tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    (tmp_path / "cli").mkdir()
    (tmp_path / "docs" / "gates.md").write_text(f"{tables.mark('gates')}\nold\n<!-- end -->\n")
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    monkeypatch.setattr(tables, "TABLES", {"gates": ("docs/gates.md", tables.gates)})

    monkeypatch.setattr(tables.sys, "argv", ["tables.py", "--write"])
    assert tables.main() == 0
    monkeypatch.setattr(tables.sys, "argv", ["tables.py"])
    assert tables.main() == 0


def test_a_bar_in_a_cell_does_not_end_it(tables):
    assert tables.table(["a"], [["x | y"]]).splitlines()[-1] == "| x \\| y |"


def test_the_layers_are_those_of_the_contracts(tables):
    rows = tables.layers().splitlines()

    assert rows[2].startswith("| `config` |")
    assert rows[-1].startswith("| `wording` |")
