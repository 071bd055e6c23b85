"""The server's REST API: requests, pages of lists, and error answers as sentences."""

import ssl
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx

from cli.credentials import SIGN_IN, Credentials
from cli.failures import ExitCode, Failure

TRIES = 3  # of a request whose answer got lost; the key makes a repeated command safe
PAUSE_S, LONGEST_PAUSE_S = 1.0, 10.0
TIMEOUT = httpx.Timeout(30, connect=5)
PAGE = 1000  # rows, the server's limit
UNAVAILABLE = {429, 502, 503, 504}
ADVICE = {
    403: "Ask an admin for the role, or create a token with this permission on the page Account and tokens.",
    409: "Nothing was changed. Read the current state first.",
    412: "Nothing was changed. Read the current state first.",
}


class Server:
    def __init__(self, credentials: Credentials) -> None:
        self.address = credentials.server
        self._http = httpx.Client(
            base_url=f"{credentials.server}/api/v1/",
            headers={"Accept": "application/json", "User-Agent": "quarterdeck-cli"}
            | ({"Authorization": f"Bearer {credentials.token}"} if credentials.token else {}),
            verify=_trust(credentials.ca_file),
            timeout=TIMEOUT,
        )

    def get(self, path: str, **query: Any) -> Any:
        """Returns one answer.

        :raises Failure: with the server's sentence
        """
        return self._ask("GET", path, params=query)

    def rows(self, path: str, *, most: int = 0, **query: Any) -> list[Any]:
        """Returns all rows of a list, or the first `most`. Costs a request for each 1,000 rows.

        :raises Failure: with the server's sentence
        """
        found: list[Any] = []
        asked = query | {"limit": min(most or PAGE, PAGE)}
        while True:
            page = self.get(path, **asked)
            found += page["results"]
            if not page["next"] or 0 < most <= len(found):
                return found[: most or None]
            asked = dict(parse_qsl(urlsplit(page["next"]).query))

    def post(self, path: str, body: Mapping[str, Any], *, key: str = "") -> Any:
        """Sends a command and returns its answer. None: recorded, without an answer.

        `key` is required for everything that changes something: a lost answer is asked for again.

        :raises Failure: with the server's sentence
        """
        return self._ask("POST", path, json=body, headers={"Idempotency-Key": key} if key else {})

    def post_document(self, path: str, content: bytes, *, if_match: str = "", **query: Any) -> Any:
        """Sends a YAML or JSON document. `if_match` is the mark of what was shown: the server refuses if it changed.

        :raises Failure: with the server's sentence
        """
        headers = {"Content-Type": "application/yaml"} | ({"If-Match": f'"{if_match}"'} if if_match else {})
        return self._ask("POST", path, content=content, params=query, headers=headers)

    def _ask(self, method: str, path: str, **given: Any) -> Any:
        for attempt in range(1, TRIES + 1):
            try:
                answer = self._http.request(method, path, **given)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
                raise self._not_connected(error) from error
            except httpx.TransportError as error:
                if attempt == TRIES:
                    raise self._not_connected(error) from error
                time.sleep(PAUSE_S)
                continue
            if answer.status_code not in UNAVAILABLE or attempt == TRIES:
                break
            time.sleep(min(_retry_after_s(answer), LONGEST_PAUSE_S))
        if answer.is_success:
            return self._body(answer)
        raise self._refusal(answer)

    def _body(self, answer: httpx.Response) -> Any:
        if not answer.content:
            return None
        try:
            return answer.json()
        except ValueError as error:
            raise self._foreign(answer) from error

    def _not_connected(self, error: Exception) -> Failure:
        seen: BaseException | None = error
        while seen is not None:
            if isinstance(seen, ssl.SSLCertVerificationError):
                return Failure(
                    f"The certificate of {self.address} is not trusted: {seen.verify_message}. "
                    "Name your CA with --ca-file or QUARTERDECK_CA_FILE.",
                    ExitCode.NO_ANSWER,
                )
            seen = seen.__cause__ or seen.__context__
        return Failure(
            f"No answer from {self.address}: {str(error) or type(error).__name__}. "
            "Check the address, the network, and that the server runs.",
            ExitCode.NO_ANSWER,
        )

    def _refusal(self, answer: httpx.Response) -> Failure:
        status = answer.status_code
        if answer.is_redirect:
            target = answer.headers.get("Location", "")
            return Failure(f"{self.address} redirects to {target}. Sign in there.", ExitCode.NO_ANSWER)
        if not answer.headers.get("Content-Type", "").startswith("application/problem+json"):
            return self._foreign(answer)
        problem = self._body(answer)
        sentence = " ".join([problem["detail"], *_particulars(problem)])
        if status == 404:
            return Failure(f"{answer.url.path.removeprefix('/api/v1/')}: {sentence}")
        if status == 401:
            return Failure(f"{sentence} {SIGN_IN}", ExitCode.SIGNED_OUT)
        if status in UNAVAILABLE:
            return Failure(f"{sentence} Try again in {_retry_after_s(answer):.0f} s.", ExitCode.NO_ANSWER)
        return Failure(f"{sentence} {ADVICE.get(status, '')}".rstrip(), error=str(problem.get("error", "")))

    def _foreign(self, answer: httpx.Response) -> Failure:
        return Failure(
            f"{answer.url.copy_with(query=None)} answered {answer.status_code}, but not as Quarterdeck does. "
            "Check the address and the proxies before it.",
            ExitCode.NO_ANSWER,
        )


def _particulars(problem: Mapping[str, Any]) -> list[str]:
    """Returns a sentence for each named field and each blocker."""
    fields = [f"{item['field']}: {item['sentence']}" for item in problem.get("errors", [])]
    named = [sentence for sentence in fields if sentence not in problem["detail"]]
    blockers = [f"{item['title']}. {item['summary']}" for item in problem.get("blockers", [])]
    return [*named, *blockers]


def _retry_after_s(answer: httpx.Response) -> float:
    try:
        return max(float(answer.headers.get("Retry-After", PAUSE_S)), 0)
    except ValueError:  # a date, as proxies may send it
        return PAUSE_S


def _trust(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise Failure(f"{ca_file} contains no certificate: {error}", ExitCode.USAGE) from error
