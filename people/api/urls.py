from django.urls import path

from people.api.audit import AuditFile, AuditList
from people.api.device_authorizations import DeviceAuthorizations, DeviceTokens
from people.api.group_mappings import GroupMappingDetail, GroupMappingList
from people.api.groups import GroupDetail, GroupList, GroupMember, GroupMembers
from people.api.me import Me
from people.api.people import (
    PersonDetail,
    PersonList,
    PersonPasswordLinks,
    PersonRole,
    PersonRoles,
    PersonToken,
    PersonTokenList,
)
from people.api.session import Session
from people.api.sessions import PersonSession, PersonSessionList, SessionDetail, SessionList
from people.api.tokens import TokenDetail, TokenList

urlpatterns = [
    path("audit-entries", AuditList.as_view()),
    path("audit-entries.jsonl", AuditFile.as_view()),
    path("device-authorizations", DeviceAuthorizations.as_view()),
    path("device-tokens", DeviceTokens.as_view()),
    path("group-mappings", GroupMappingList.as_view()),
    path("group-mappings/<int:mapping_id>", GroupMappingDetail.as_view()),
    path("groups", GroupList.as_view()),
    path("groups/<int:group_id>", GroupDetail.as_view()),
    path("groups/<int:group_id>/members", GroupMembers.as_view()),
    path("groups/<int:group_id>/members/<int:person_id>", GroupMember.as_view()),
    path("people", PersonList.as_view()),
    path("people/<int:person_id>", PersonDetail.as_view()),
    path("people/<int:person_id>/password-links", PersonPasswordLinks.as_view()),
    path("people/<int:person_id>/roles", PersonRoles.as_view()),
    path("people/<int:person_id>/roles/<int:binding_id>", PersonRole.as_view()),
    path("people/<int:person_id>/sessions", PersonSessionList.as_view()),
    path("people/<int:person_id>/sessions/<slug:session_id>", PersonSession.as_view()),
    path("people/<int:person_id>/tokens", PersonTokenList.as_view()),
    path("people/<int:person_id>/tokens/<int:token_id>", PersonToken.as_view()),
    path("me", Me.as_view()),
    path("session", Session.as_view()),
    path("sessions", SessionList.as_view()),
    path("sessions/<slug:session_id>", SessionDetail.as_view()),
    path("tokens", TokenList.as_view()),
    path("tokens/<int:token_id>", TokenDetail.as_view()),
]
