"""The `WWW-Authenticate` header of a refusal (RFC 6750 section 3, RFC 9728 section 5.1). Pure."""

from __future__ import annotations

from collections.abc import Iterable

from sandbridge_orchestrator.core.claims import Refusal


def challenge(refusal: Refusal, *, resource_metadata: str, scopes: Iterable[str]) -> str:
    """Return the header's value; `scopes` are asked for where the refusal itself names none.

    A refusal without a code, for a request without a credential, states no error (RFC 6750 section 3.1).
    """
    parameters = [("error", refusal.error), ("error_description", refusal.description)] if refusal.error else []
    wanted = " ".join(sorted(refusal.scopes or frozenset(scopes)))
    if wanted:
        parameters.append(("scope", wanted))
    parameters.append(("resource_metadata", resource_metadata))
    return "Bearer " + ", ".join(f'{name}="{_quoted(value or "")}"' for name, value in parameters)


def _quoted(text: str) -> str:
    # What a quoted string cannot hold, a line break above all, becomes a question mark.
    plain = "".join(character if " " <= character <= "~" else "?" for character in text)
    return plain.replace("\\", "\\\\").replace('"', '\\"')
