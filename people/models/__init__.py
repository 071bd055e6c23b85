from people.models.api_token import ApiToken
from people.models.audit_entry import AuditEntry
from people.models.role_binding import Role, RoleBinding
from people.models.sign_in_tries import SignInTries
from people.models.user import User

__all__ = ["ApiToken", "AuditEntry", "Role", "RoleBinding", "SignInTries", "User"]
