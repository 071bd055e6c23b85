import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.dev")
os.environ.setdefault("QUARTERDECK_PROCESS", "web")
os.environ.setdefault("QUARTERDECK_SQLITE_MMAP_MIB", "256")  # pages read all nodes; workers hardly do
pages = get_asgi_application()  # sets Django up: everything below may import models

from django.core.checks import ERROR, run_checks  # noqa: E402

if broken := [message for message in run_checks() if message.level >= ERROR]:
    # The management commands check themselves; a server that starts on bad settings fails later, and elsewhere.
    raise SystemExit("\n".join(str(message) for message in broken))

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402

from config.garbage import collect_rarely  # noqa: E402
from config.nul import RefuseNulCookie  # noqa: E402
from config.origins import SameOrigin  # noqa: E402
from config.outages import CloseOnOutage  # noqa: E402
from config.process_cleanup import keep_tidy  # noqa: E402
from config.routing import sockets  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": pages,
        "websocket": CloseOnOutage(SameOrigin(RefuseNulCookie(AuthMiddlewareStack(URLRouter(sockets))))),
    },
)

collect_rarely()
keep_tidy()
