"""What others write is read or refused, whatever it is: no class of error gets past the one that we raise."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fleet.pools.files.parser import parse_pool_file as read_pools
from fleet.pools.files.problems import BadPoolFile
from gpu import versions
from gpu.compatibility import ranges
from gpu.resources import registered_in
from health.logs.crashes import lines_to_store
from health.stack.causes.affinity import _compares
from health.telemetry.exporter import read_devices
from health.telemetry.lines import UnreadableMetrics
from kube import quantity, redaction
from kube.client import kubeconfig
from kube.client.connection import connect
from kube.client.decoder import STRUCTS, decode, decode_list
from kube.client.errors import LONGEST_WAIT_S, BadKubeconfig, ClusterError, Unreadable, error_for
from kube.client.server_clock import ServerClock

DIGITS = st.text("0123456789.-+eEKMGimnu²５", max_size=80) | st.integers(1, 6000).map(lambda size: "9" * size)
YAML = st.text("ab: -[]{}&*!|>'\"\\Ux0F#%@,?\n\t0129", max_size=60)
JSON = st.text('[]{}",:0123456789eE.-truefalsn\\uD8', max_size=60)
LOGS = st.text("ab=:/-'\" \r\n\x1b[0;31m\x00é", max_size=200)


@dataclass(frozen=True)
class Reads:
    call: Callable[[str], object]
    texts: st.SearchStrategy[str]
    refuses: tuple[type[Exception], ...] = ()


READS = {
    "a quantity": Reads(quantity.whole_quantity, DIGITS),
    "a quantity that is summed": Reads(quantity.rounded_up, DIGITS),
    "a version": Reads(versions.parse_version, DIGITS),
    "an image": Reads(lambda text: versions.driver_of(versions.tag_of(text)), DIGITS),
    "a version in a range": Reads(lambda text: text in ranges.Range("1.2", "3"), DIGITS),
    "a label that is compared": Reads(lambda text: _compares("Gt", text, [text]), DIGITS),
    "what HAMi registers": Reads(lambda text: registered_in({"hami.io/node-nvidia-register": text}), JSON),
    "an exporter's metrics": Reads(read_devices, st.text('x{}=",UID # \\\n\x1f01'), (UnreadableMetrics,)),
    "a pool file": Reads(read_pools, YAML, (BadPoolFile,)),
    "a line of a log": Reads(redaction.redacted, LOGS),
    "a log": Reads(lambda text: lines_to_store(text.splitlines()), LOGS),
    "a server's date": Reads(lambda text: ServerClock().note(text, sent_at=0, answered_at=0), DIGITS | LOGS),
    "a refusal": Reads(lambda text: error_for(409, text.encode(errors="replace"), retry_after=text), JSON | DIGITS),
    "an object": Reads(lambda text: [decode(text.encode(), kind) for kind in STRUCTS], JSON, (Unreadable,)),
    "a list": Reads(lambda text: [decode_list(text.encode(), kind) for kind in STRUCTS], JSON, (Unreadable,)),
}


@pytest.mark.parametrize("name", READS)
@example(text="-1e400")  # a float that is no integer
@example(text="9" * 4301)  # more digits than Python reads
@example(text="²")  # a digit, and no number
@example(text='a: "\\UFFFFFFFF"')  # a character that does not exist
@example(text="[5]")
@example(text="[" * 3000)  # deeper than Python goes
@example(text='x{UUID="1",\x1f="1"} 1')
@given(text=st.data())
def test_whatever_is_written_is_read_or_refused(name, text):
    reads = READS[name]
    written = text if isinstance(text, str) else text.draw(reads.texts | st.text())
    with suppress(*reads.refuses):
        reads.call(written)


def a_kubeconfig(cluster: str = "{server: 'http://127.0.0.1:1'}", user: str = "{}") -> str:
    one = f"clusters: [{{name: a, cluster: {cluster}}}], users: [{{name: a, user: {user}}}]"
    return f"{{{one}, contexts: [{{name: one, context: {{cluster: a, user: a}}}}]}}"


@pytest.mark.parametrize(
    "content",
    [
        "contexts: 5",
        "contexts: [{name: [a]}]",
        "a: 2026-99-99",  # a date that does not exist
        "a: " + "[" * 3000,
        '"\\UFFFFFFFF"',
        "{clusters: [], contexts: [{name: one, context: 5}]}",
        a_kubeconfig("5"),
        a_kubeconfig(user="5"),
        a_kubeconfig("{server: 5}"),
        a_kubeconfig("{server: 'https://a', certificate-authority-data: a}"),
        a_kubeconfig("{server: 'http://a', proxy-url: 'odd://b'}"),
    ],
)
def test_a_kubeconfig_that_is_none_is_refused_in_words(content, tmp_path):
    (tmp_path / "config").write_text(content)

    with pytest.raises(BadKubeconfig, match=r"\w+ \w+"):
        connect(str(tmp_path / "config"), "one")


@pytest.mark.parametrize(
    "user",
    [
        '{token: "a\\nb"}',
        "{exec: {apiVersion: client.authentication.k8s.io/v1, command: echo, args: ['{\"kind\": 5}']}}",
        "{exec: {apiVersion: client.authentication.k8s.io/v1, command: /nowhere}}",
        "{client-certificate-data: YQ==, client-key-data: YQ==}",
    ],
)
def test_credentials_that_are_none_cost_a_request_and_nothing_else(user, tmp_path):
    (tmp_path / "config").write_text(a_kubeconfig("{server: 'https://127.0.0.1:1'}", user))

    with pytest.raises(ClusterError, match=r"\w+ \w+"):
        connect(str(tmp_path / "config"), "one").get("/version")


@given(YAML | st.text())
def test_any_text_as_a_kubeconfig_is_one_or_refused(tmp_path_factory, text):
    path = Path(tmp_path_factory.getbasetemp()) / "any-config"
    path.write_text(text, errors="replace")
    with suppress(BadKubeconfig):
        kubeconfig.load(str(path), "one")


@pytest.mark.parametrize("said", ["²", "9" * 400, "1e300", "-5", "Wed, 21 Oct 2026 07:28:00 GMT", "", "12"])
def test_nobody_is_told_to_wait_for_ever(said):
    wait_s = error_for(429, b"", retry_after=said).retry_after_s

    assert wait_s is not None
    assert 0 <= wait_s <= LONGEST_WAIT_S


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(1e300)
@example(-1.0)
def test_nor_by_the_body_of_a_refusal(seconds):
    body = f'{{"kind":"Status","code":429,"details":{{"retryAfterSeconds":{seconds!r}}}}}'.encode()

    assert 0 <= (error_for(429, body).retry_after_s or 0) <= LONGEST_WAIT_S
