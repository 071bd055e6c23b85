from django.http import HttpRequest

from people.models import User


class PersonRequest(HttpRequest):
    """A request of somebody who has signed in: `LoginRequiredMiddleware` lets nobody else reach a page."""

    user: User
