"""The schema of a deployment: what the config file, the processes and an `McpDeployment`'s `spec` have in common.

An unknown key is an error that names it. Secrets are no settings.
"""

from sandbridge_kit.config.apis import ApiSettings, CredentialSettings, DocumentSettings
from sandbridge_kit.config.audit import AuditSettings
from sandbridge_kit.config.auth import AuthSettings, ExchangeSettings, IssuerSettings, ToolScopeSettings
from sandbridge_kit.config.base import API_NAME, API_NAME_RULE, Section, SettingsError
from sandbridge_kit.config.deployment import Deployment
from sandbridge_kit.config.limits import CallerLimitSettings
from sandbridge_kit.config.policy import DefaultEffects, Effect, PolicySettings, RuleSettings
from sandbridge_kit.config.reading import explain, tree_from
from sandbridge_kit.config.sandbox import LimitSettings, SandboxSettings

__all__ = [
    "API_NAME",
    "API_NAME_RULE",
    "ApiSettings",
    "AuditSettings",
    "AuthSettings",
    "CallerLimitSettings",
    "CredentialSettings",
    "DefaultEffects",
    "Deployment",
    "DocumentSettings",
    "Effect",
    "ExchangeSettings",
    "IssuerSettings",
    "LimitSettings",
    "PolicySettings",
    "RuleSettings",
    "SandboxSettings",
    "Section",
    "SettingsError",
    "ToolScopeSettings",
    "explain",
    "tree_from",
]
