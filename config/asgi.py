import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.dev")
os.environ.setdefault("QUARTERDECK_PROCESS", "web")
os.environ.setdefault("QUARTERDECK_SQLITE_MMAP_MIB", "256")  # pages read all nodes; workers seldom do
pages = get_asgi_application()  # sets up Django: the imports below may use models

from django.core.checks import ERROR, run_checks  # noqa: E402

if broken := [message for message in run_checks() if message.level >= ERROR]:
    # Management commands run these checks themselves. Without this, a server with bad settings would fail later.
    raise SystemExit("\n".join(str(message) for message in broken))

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402

from config.garbage import freeze_collector  # noqa: E402
from config.nul import RefuseNulCookie  # noqa: E402
from config.origins import SameOrigin  # noqa: E402
from config.outages import CloseOnOutage  # noqa: E402
from config.process_cleanup import start_cleanup  # noqa: E402
from config.routing import sockets  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": pages,
        "websocket": CloseOnOutage(SameOrigin(RefuseNulCookie(AuthMiddlewareStack(URLRouter(sockets))))),
    },
)

freeze_collector()
start_cleanup()
