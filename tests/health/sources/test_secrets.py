"""Where secrets of sources are read, and for which clusters: Z39."""

import pytest

from health.sources.secrets import AT_MOST, SOURCE_SECRETS, NoSecret
from tests import make

PREFIX = SOURCE_SECRETS.prefix
TOKEN, VARIABLE = "sesame-open", "QUARTERDECK_SOURCE_PROMETHEUS"


@pytest.fixture
def folder(settings, tmp_path):
    settings.SECRETS_DIR = str(tmp_path / "secrets")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "outside").write_text(TOKEN)
    return tmp_path / "secrets"


@pytest.fixture
def put(folder, monkeypatch):
    """Put a secret and its list of clusters, in a variable or a file. None: no list."""

    def write(kind: str, secret: str | bytes, clusters: str | None) -> str:
        if kind == "env":
            monkeypatch.setenv(VARIABLE, secret)
            if clusters is not None:
                monkeypatch.setenv(f"{VARIABLE}_CLUSTERS", clusters)
            return f"env:{VARIABLE}"
        (folder / "token").write_bytes(secret if isinstance(secret, bytes) else secret.encode())
        if clusters is not None:
            (folder / "token.clusters").write_text(clusters)
        return "file:token"

    return write


def refusal(place: str, *, cluster: str = "eu-1") -> str:
    with pytest.raises(NoSecret) as refused:
        SOURCE_SECRETS.secret_at(place, cluster)
    return str(refused.value)


@pytest.mark.parametrize("kind", ["env", "file"])
@pytest.mark.parametrize("clusters", ["eu-1", "eu-1\n", "us-1, eu-1", "us-1\neu-1\n", "*"])
def test_a_cluster_that_is_listed_gets_it(put, kind, clusters):
    assert SOURCE_SECRETS.secret_at(put(kind, f"{TOKEN}\n", clusters), "eu-1") == TOKEN


@pytest.mark.parametrize("kind", ["env", "file"])
@pytest.mark.parametrize("clusters", [None, "", " ", ",", "us-1", "eu-10", "EU-1", "eu-*", "**"])
def test_a_cluster_that_is_not_listed_reads_what_it_would_without_a_secret(put, kind, clusters):
    """Nor does it learn that another cluster has one of this name."""
    place = put(kind, TOKEN, clusters)

    assert refusal(place) == SOURCE_SECRETS.none
    assert refusal("env:QUARTERDECK_SOURCE_NONE") == refusal("file:none") == SOURCE_SECRETS.none


@pytest.mark.parametrize("unusable", ["two\nlines", "short", "\x07" * 9])
def test_a_cluster_that_is_not_listed_learns_nothing_of_what_is_there(put, unusable):
    assert refusal(put("file", unusable, "us-1")) == SOURCE_SECRETS.none
    assert refusal(put("file", unusable, "eu-1")) != SOURCE_SECRETS.none


def test_reads_a_file_by_its_path_too_and_through_the_links_of_a_mounted_secret(folder, put):
    (folder / "..data").mkdir()
    (folder / "..data" / "mounted").write_text(TOKEN)
    (folder / "mounted").symlink_to("..data/mounted")
    (folder / "mounted.clusters").write_text("*")
    put("file", TOKEN, "*")

    assert SOURCE_SECRETS.secret_at(f"file:{folder}/token", "eu-1") == TOKEN
    assert SOURCE_SECRETS.secret_at("file:mounted", "eu-1") == TOKEN
    assert SOURCE_SECRETS.secret_at("", "eu-1") == ""


@pytest.mark.parametrize(
    "place",
    [
        "sesame", "env:SECRET_KEY", "env:DATABASE_URL", "env:quarterdeck_source_x", f"env:{PREFIX}", "file:",
        "file:../outside", "file:/etc/passwd", "file:.", "vault:x", f"env:{PREFIX}X\n", "env:QUARTERDECK_SECRET_KEY",
        "env:QUARTERDECK_SECRET_X", f"env:{PREFIX}X_CLUSTERS", "file:x.clusters", "file:a\0b",
        "file:../secrets/../outside",
    ],
)  # fmt: skip
def test_reads_nothing_from_any_other_place(folder, place):
    with pytest.raises(NoSecret):
        SOURCE_SECRETS.check(place)


def test_a_variable_that_a_setting_reads_is_no_secret_whatever_its_name(settings, monkeypatch):
    monkeypatch.setenv(VARIABLE, TOKEN)
    monkeypatch.setenv(f"{VARIABLE}_CLUSTERS", "*")
    settings.SETTING_VARIABLES = {*settings.SETTING_VARIABLES, VARIABLE}

    assert "That is not a variable for a secret" in refusal(f"env:{VARIABLE}")


def test_follows_no_link_out_of_its_folder(folder):
    (folder / "link").symlink_to(folder.parent / "outside")
    (folder / "link.clusters").write_text("*")

    assert refusal("file:link") == SOURCE_SECRETS.none


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"two\nlines", b"\xff\xfe" * 5, "pässwörd".encode(), b"sesame", b"x" * (AT_MOST + 1)],
)  # fmt: skip
def test_sends_nothing_that_is_no_password(put, content):
    assert refusal(put("file", content, "*"))


@pytest.mark.parametrize(
    "place",
    [
        "file:quay", "file:quay-folder", "file:quay-bytes", "file:quay-lines", "file:../quay",
        "env:QUARTERDECK_SOURCE_QUAY", "env:QUAY", "vault:quay",
    ],
)  # fmt: skip
def test_says_what_is_wrong_and_never_where(folder, place):
    """Whoever sees the cluster reads it; only admins see the place."""
    (folder / "quay-folder").mkdir()
    (folder / "quay-bytes").write_bytes(b"\xff\xfe")
    (folder / "quay-lines").write_text("two\nlines")
    for name in ("quay-folder", "quay-bytes", "quay-lines"):
        (folder / f"{name}.clusters").write_text("*")

    said = refusal(place)

    assert "secret" in said or "password" in said
    assert "quay" not in said.lower()
    assert str(folder.parent) not in said


@pytest.mark.parametrize("method", ["patch", "put", "post"])
def test_who_administers_a_cluster_gives_it_no_other_name(root, method):
    """A secret is for the cluster of a name: one that took another's would have its secret."""
    cluster = make.a_cluster("eu-1")
    given = {"name": "us-1", "approval": "required", "reason": "a test"}

    said = getattr(root, method)(f"/api/v1/clusters/{cluster.pk}", given, format="json")

    cluster.refresh_from_db()
    assert (said.status_code, cluster.name) in ((400, "eu-1"), (405, "eu-1"))
