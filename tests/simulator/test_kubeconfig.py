"""Where the simulator writes its kubeconfig: over its own of before, and over nobody else's."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simulator.kubeconfig import ForeignFile, write

TOKENS = {"simulator": "t0ken"}
OF_PRODUCTION = "apiVersion: v1\nkind: Config\nclusters:\n- name: production\n  cluster: {server: https://10.0.0.1}\n"


def test_writes_over_its_own(tmp_path: Path):
    write(tmp_path / "kubeconfig", "http://127.0.0.1:1", TOKENS, None)

    write(tmp_path / "kubeconfig", "http://127.0.0.1:2", TOKENS, None)

    assert "127.0.0.1:2" in (tmp_path / "kubeconfig").read_text()
    assert (tmp_path / "kubeconfig").stat().st_mode & 0o077 == 0


def test_writes_over_an_empty_file(tmp_path: Path):
    (tmp_path / "kubeconfig").touch()

    write(tmp_path / "kubeconfig", "http://127.0.0.1:1", TOKENS, None)


@pytest.mark.parametrize(
    "found", [OF_PRODUCTION, '{"clusters": [{"name": "production"}]}', "[]", "{", '{"clusters": 1}']
)
def test_a_file_of_somebody_else_stays(tmp_path: Path, found: str):
    file = tmp_path / "config"
    file.write_text(found)

    with pytest.raises(ForeignFile, match="no simulator wrote it"):
        write(file, "http://127.0.0.1:1", TOKENS, None)

    assert file.read_text() == found


@given(found=st.binary(min_size=1, max_size=80))
@example(found=b'{"":""}')
@example(found=b'{"clusters": []}')
def test_no_bytes_that_are_not_its_own_are_written_over(found: bytes, tmp_path_factory: pytest.TempPathFactory):
    file = tmp_path_factory.mktemp("somebodys") / "config"
    file.write_bytes(found)

    try:
        write(file, "http://127.0.0.1:1", TOKENS, None)
    except ForeignFile:
        assert file.read_bytes() == found
    else:
        assert found.strip() == b"{}"
