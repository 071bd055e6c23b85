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

    with pytest.raises(NoSecret, match="is not in the folder"):
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


@pytest.mark.parametrize(
    "place",
    [
        "file:quay", "file:quay-folder", "file:quay-bytes", "file:quay-lines", "file:../quay",
        "env:QUARTERDECK_SECRET_QUAY", "env:QUAY", "vault:quay",
    ],
)  # fmt: skip
def test_says_what_is_wrong_and_never_where(folder, place):
    """Whoever sees the cluster reads it; only admins see the place."""
    (folder / "quay-folder").mkdir()
    (folder / "quay-bytes").write_bytes(b"\xff\xfe")
    (folder / "quay-lines").write_text("two\nlines")

    with pytest.raises(NoSecret) as refusal:
        secret_at(place)

    said = str(refusal.value)
    assert "secret" in said or "password" in said
    assert "quay" not in said.lower()
    assert str(folder.parent) not in said
