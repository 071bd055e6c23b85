import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.redaction import REDACTED, redacted

SECRETS = st.text(string.ascii_letters + string.digits, min_size=40, max_size=64).filter(
    lambda text: any(letter.isdigit() for letter in text)
)


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("proxy http://me:s3cret@proxy.local:3128 set", f"proxy http://{REDACTED}@proxy.local:3128 set"),
        ("password=hunter2 user=me", f"password={REDACTED} user=me"),
        ('{"clientSecret": "abc def", "name": "x"}', f'{{"clientSecret": {REDACTED}, "name": "x"}}'),
        ("MY_API_KEY: k-1234", f"MY_API_KEY: {REDACTED}"),
        ("run --auth-token abc123 --verbose", f"run --auth-token {REDACTED} --verbose"),
        ("got eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln back", f"got {REDACTED} back"),
        ("curl -H Bearer abc123def", f"curl -H Bearer {REDACTED}"),
        ("login nvapi-0123456789abcdef", f"login {REDACTED}"),
        ("-----BEGIN RSA PRIVATE KEY-----", REDACTED),
        ("Authorization: token abcd1234efgh5678ijkl", f"Authorization: {REDACTED}"),
        ("> Proxy-Authorization = ApiKey abcd1234 more", f"> Proxy-Authorization = {REDACTED}"),
        ('curl -H "Authorization: token abcd1234" https://a/', f'curl -H "Authorization: {REDACTED}" https://a/'),
        ("{'authorization': 'token abcd', 'x': 1}", f"{{'authorization': {REDACTED}, 'x': 1}}"),
        ('{\\"Authorization\\": \\"token abcd\\"}', f'{{\\"Authorization\\": {REDACTED}'),
        ("map[Authorization:[token abcd]]", f"map[Authorization:{REDACTED}"),
        ('Cookie: a="b c"; sessionid=abcd', f"Cookie: {REDACTED}"),
        ("< set-cookie: sid=abcd; Path=/", f"< set-cookie: {REDACTED}"),
        ("OPENAI_API_KEY sk-proj-abcd1234efgh5678", f"OPENAI_API_KEY {REDACTED}"),
        ("docker login -p dckr_pat_abcd1234EFGH", f"docker login -p {REDACTED}"),
    ],
)
def test_what_looks_like_a_secret_is_taken_out(line, kept):
    assert redacted(line) == kept


@pytest.mark.parametrize(
    "line",
    [
        "Could not resolve Linux kernel version",
        "nvcr.io/nvidia/driver@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "GPU-5a1b2c3d-0000-1111-2222-333344445555 fell off the bus",
        "make[1]: *** /lib/modules/5.15.0-60-generic/build: No such file or directory",
        "/usr/src/nvidia-570.124.06/kernel/nvidia/nv-kthread-q.c:25: warning",
        "Shutting down basic operations",
        "failed to authorize: 401 Unauthorized",
        "a task-force-of-4-nodes and pod sk-learn-0 began",
        "/sys/module/firmware_class/parameters/path: Read-only file system",
    ],
)
def test_what_tells_why_stays(line):
    assert redacted(line) == line


@pytest.mark.parametrize(
    "piece", ["authorization", '"authorization: ', "authorization ", "authorization\\", "set-cookie", "sk-", "'cookie'"]
)
def test_the_time_grows_with_the_length_of_a_line_alone(piece):
    short, long = (_cpu_s(piece * number) for number in (1_000, 8_000))

    assert long < 0.05 + 24 * short


def _cpu_s(line: str) -> float:
    began = time.process_time()
    redacted(line)
    return time.process_time() - began


@given(SECRETS, st.sampled_from(["token={}", "key {} used", "https://u:{}@h/", '"{}"', "{}", "x={}=="]))
def test_no_long_secret_survives_wherever_it_stands(secret, place):
    assert secret not in redacted(place.format(secret))


@given(st.text())
def test_any_line_can_be_read_again_without_losing_more(line):
    once = redacted(line)

    assert len(redacted(once)) <= len(once) + len(REDACTED)
