"""What a page shows of somebody's rights."""

from django import template

from people.models import User
from people.rights import Permission, scope_of

register = template.Library()


@register.simple_tag
def gives_roles(user: User) -> bool:
    """Whether the page of people is theirs to open."""
    return not scope_of(user, Permission.ADMINISTER).nowhere
