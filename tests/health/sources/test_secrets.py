import pytest

from health.sources.secrets import AT_MOST, NoSecret, check_place, secret_at


@pytest.fixture
def folder(settings, tmp_path):
    settings.SECRETS_DIR = str(tmp_path / "secrets")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "outside").write_text("root")
    return tmp_path / "secrets"


def test_reads_a_variable_and_a_file(folder, monkeypatch):
    monkeypatch.setenv("QUARTERDECK_SECRET_PROMETHEUS", "sesame\n")
    (folder / "token").write_text("open\n")

    assert secret_at("env:QUARTERDECK_SECRET_PROMETHEUS") == "sesame"
    assert secret_at("file:token") == "open"
    assert secret_at(f"file:{folder}/token") == "open"
    assert secret_at("") == ""


@pytest.mark.parametrize(
    "place",
    [
        "sesame", "env:SECRET_KEY", "env:DATABASE_URL", "env:quarterdeck_secret_x", "env:QUARTERDECK_SECRET_", "file:",
        "file:../outside", "file:/etc/passwd", "file:.", "vault:x", "env:QUARTERDECK_SECRET_X\n",
    ],
)  # fmt: skip
def test_reads_nothing_from_any_other_place(folder, place):
    with pytest.raises(NoSecret):
        check_place(place)


def test_follows_no_link_out_of_its_folder(folder):
    (folder / "link").symlink_to(folder.parent / "outside")

    with pytest.raises(NoSecret, match="is not in"):
        secret_at("file:link")


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"two\nlines", b"\xff\xfe", "pässwörd".encode(), b"x" * AT_MOST + b"\n\x00"]
)
def test_sends_nothing_that_is_no_password(folder, content):
    (folder / "token").write_bytes(content)

    if content.startswith(b"x"):
        assert len(secret_at("file:token")) == AT_MOST
    else:
        with pytest.raises(NoSecret):
            secret_at("file:token")


def test_says_that_it_is_not_there(folder):
    for place in ("file:none", "env:QUARTERDECK_SECRET_NONE"):
        with pytest.raises(NoSecret, match=r"none|NONE"):
            secret_at(place)
