"""The sign-in in a browser (RFC 8628): prints an address and a code, and polls until a person confirms it."""

import socket
import time

import typer

from cli.credentials import Credentials, checked_token
from cli.failures import ExitCode, Failure
from cli.server import Server
from cli.tables import plain

LONGEST_NAME = 60  # characters, the server's limit
SLOWER_S = 5  # added to the interval when the server asks for it
ENDS = {
    "access_denied": "The request was denied in the browser.",
    "expired_token": "Nobody confirmed the code in time. Run the command again.",
    "invalid_grant": "The code was used before, so its token is revoked. Run the command again.",
}


def token_from_browser(server: str, ca_file: str) -> str:
    """Returns a token that a person confirmed in the browser. A server that does not answer is asked again.

    :raises Failure: when the person denies it, or the code expires
    """
    http = Server(Credentials(server, "", ca_file))
    codes = http.post("device-authorizations", {"client": f"quarterdeck on {socket.gethostname()}"[:LONGEST_NAME]})
    typer.echo(f"Open {plain(codes['verification_uri_complete'])}", err=True)
    minutes = codes["expires_in"] // 60
    typer.echo(f"Confirm the code {plain(codes['user_code'])} there. It expires in {minutes} minutes.", err=True)
    outage: Failure | None = None
    until, interval_s = time.monotonic() + codes["expires_in"], codes["interval"]
    while time.monotonic() < until:
        time.sleep(interval_s)
        try:
            answer = http.post("device-tokens", {"device_code": codes["device_code"]})
        except Failure as failure:
            outage = failure if failure.code == ExitCode.NO_ANSWER else None
            if failure.error == "slow_down":
                interval_s += SLOWER_S
            elif not outage and failure.error != "authorization_pending":
                raise Failure(ENDS.get(failure.error, str(failure)), failure.code) from failure
            continue
        return checked_token(answer["access_token"], source="The answer of the server")
    raise outage or Failure(ENDS["expired_token"], ExitCode.REFUSED)
