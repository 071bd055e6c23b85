from people.models.api_token import ApiToken
from people.models.audit_entry import AuditEntry
from people.models.browser_session import BrowserSession
from people.models.device_authorization import DeviceAuthorization
from people.models.mapped_group import GroupMapping
from people.models.user import Role, RoleBinding, SignInTries, User
