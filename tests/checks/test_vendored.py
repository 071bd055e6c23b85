import importlib.util
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def differences(folder: Path) -> list[str]:
    spec = importlib.util.spec_from_file_location("vendored", ROOT / "bin" / "checks" / "vendored.py")
    assert spec is not None
    assert spec.loader is not None
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    return check.differences(folder)


def a_vendor_folder(folder: Path, **hashes: str) -> Path:
    files = [{"path": path, "sha256": sha256} for path, sha256 in hashes.items()]
    package = {"name": "htmx", "version": "2", "licence": "0BSD", "source": "htmx.org", "files": files}
    (folder / "VENDOR.json").write_text(json.dumps([package]))
    return folder


EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_passes_when_every_file_is_the_listed_one(tmp_path: Path):
    (tmp_path / "htmx").write_text("")

    assert differences(a_vendor_folder(tmp_path, htmx=EMPTY)) == []


def test_names_a_file_that_was_changed(tmp_path: Path):
    (tmp_path / "htmx").write_text("mended by hand")

    assert differences(a_vendor_folder(tmp_path, htmx=EMPTY)) == ["htmx: changed"]


def test_names_a_file_that_nobody_listed_and_one_that_is_not_there(tmp_path: Path):
    (tmp_path / "stray").write_text("")

    found = differences(a_vendor_folder(tmp_path, htmx=EMPTY))

    assert found == ["htmx: listed, but not there", "stray: there, but not in VENDOR.json"]


def test_nothing_that_pages_load_fetches_from_another_machine():
    stylesheets = (ROOT / "static" / "vendor").rglob("*.css")

    assert not [sheet for sheet in stylesheets if "url(http" in sheet.read_text() or "@import" in sheet.read_text()]


def test_every_icon_that_a_page_draws_is_there_and_no_other():
    pages = "".join(path.read_text() for path in sorted((ROOT / "templates").rglob("*.html")))
    sprite = (ROOT / "static" / "vendor" / "tabler-icons" / "sprite.svg").read_text()

    assert set(re.findall(r'\{% icon "([^"]+)"', pages)) == set(re.findall(r'<symbol id="([^"]+)"', sprite))
