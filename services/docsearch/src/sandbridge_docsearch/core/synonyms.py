"""Words that mean the same in APIs. Small on purpose: a wrong synonym costs more than a missing one."""

from __future__ import annotations

from collections.abc import Mapping

from sandbridge_docsearch.core.words import stem

VERB_METHODS: Mapping[str, tuple[str, ...]] = {
    "GET": ("get", "list", "find", "fetch", "show", "read", "retrieve", "view", "search", "lookup", "count"),
    "POST": ("create", "add", "post", "new", "insert", "register", "send", "submit", "start", "upload", "make"),
    "PUT": ("update", "edit", "change", "modify", "replace", "set", "rename"),
    "PATCH": ("update", "edit", "change", "modify", "patch", "rename"),
    "DELETE": ("delete", "remove", "destroy", "drop", "erase", "unset"),
}
"""The verbs that a question uses for each HTTP method."""

_VERBS = (
    ("create", "add", "new", "insert", "register"),
    ("delete", "remove", "destroy", "erase", "drop"),
    ("update", "edit", "change", "modify", "patch"),
    ("get", "fetch", "retrieve", "read", "show"),
    ("list", "browse", "all"),
    ("search", "find", "query", "lookup"),
    ("send", "deliver", "dispatch"),
    ("upload", "attach", "import"),
    ("download", "export"),
    ("cancel", "abort", "stop"),
    ("start", "launch", "run", "trigger"),
    ("enable", "activate"),
    ("disable", "deactivate"),
)

_NOUNS = (
    ("user", "member", "account", "person"),
    ("customer", "client"),
    ("repository", "repo"),
    ("organization", "org", "company"),
    ("picture", "image", "photo"),
    ("message", "chat"),
    ("email", "mail"),
    ("movie", "film"),
    ("tv", "television", "show"),
    ("song", "track", "music"),
    ("picture", "poster"),
    ("cost", "price", "fee"),
    ("place", "location", "venue", "address"),
    ("purchase", "order"),
    ("bill", "invoice"),
    ("folder", "directory"),
    ("file", "document", "attachment"),
    ("tag", "label"),
    ("ticket", "issue"),
    ("job", "task"),
    ("permission", "role", "access"),
    ("pr", "pull"),
    ("env", "environment"),
    ("config", "configuration", "setting"),
    ("statistic", "stat", "metric", "analytics"),
    ("id", "identifier"),
    ("exchange", "conversion", "rate"),
    ("weather", "forecast"),
    ("event", "meeting"),
    ("secret", "credential"),
    ("machine", "server", "vm", "instance"),
)


def _by_stem(groups: tuple[tuple[str, ...], ...]) -> Mapping[str, tuple[str, ...]]:
    table: dict[str, dict[str, None]] = {}
    for group in groups:
        stems = [stem(word) for word in group]
        for own in stems:
            table.setdefault(own, {}).update(dict.fromkeys(other for other in stems if other != own))
    return {own: tuple(others) for own, others in table.items()}


NOUNS = _by_stem(_NOUNS)
VERBS = _by_stem(_VERBS)
"""Stem → the stems of its synonyms."""

METHODS_OF_VERB: Mapping[str, frozenset[str]] = {
    verb: frozenset(method for method, verbs in VERB_METHODS.items() if verb in verbs)
    for verbs in VERB_METHODS.values()
    for verb in verbs
}
