"""Rights on notifications in REST. The log names findings of every cluster."""

from typing import Any

from rest_framework.exceptions import NotFound
from rest_framework.permissions import SAFE_METHODS

from edges.rest import Edge
from people.rights import Permission, require, scope_of


class NotificationEdge(Edge):
    """A view for those who see the whole fleet, with changes for its admins. A caller without a role gets 404."""

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if scope_of(self.user, Permission.SEE).nowhere:
            raise NotFound
        require(self.user, Permission.SEE)
        if request.method not in SAFE_METHODS:
            require(self.user, Permission.ADMINISTER)

    @property
    def actor(self) -> str:
        return self.user.get_username()
