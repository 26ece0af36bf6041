"""`sandbridge egress-policy`: what the endpoint may reach, in the form that another layer takes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from sandbridge_kit.config import SettingsError
from sandbridge_kit.destination import origin_of
from sandbridge_kit.egress_policy import Reached, policy_of
from sandbridge_local.apis import load_apis
from sandbridge_local.policy_forms import printed
from sandbridge_local.run_time_paths import run_time_paths
from sandbridge_local.settings import Settings
from sandbridge_local.validity import banners_of, verdict_of


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Print the policy, and its fingerprint on standard error; raises SettingsError for what may not start."""
    # Nothing is started, so nothing has to be acknowledged to see what it would mean.
    banners_of(
        verdict_of(settings, platform=sys.platform, credentialed=options.keys, no_egress_control=True, serves=False)
    )
    apis = load_apis(settings)
    policy = policy_of(
        settings.sandbox.engine,
        settings.egress.authority,
        ((api.name, api.origin, api.settings.allow_private) for api in apis),
        _issuers(settings),
    )
    try:
        form = printed(policy, options.format, run_time_paths(settings, others=(options.config, options.keys_dir)))
    except ValueError as error:
        raise SettingsError(f"--format {options.format}: {error}.") from None
    for api in apis:
        if api.base_url is None:
            print(f"sandbridge: {api.name} has no base URL, so it reaches nothing", file=sys.stderr)
        if api.caution:
            print(f"sandbridge: {api.caution}", file=sys.stderr)
    for note in form.notes:
        print(f"sandbridge: {note}", file=sys.stderr)
    print(f"policySha256={policy.sha256}", file=sys.stderr)
    print(form.text, end="")
    return 0


def _issuers(settings: Settings) -> Iterator[Reached]:
    # Where metadata names keys at another host, `jwksUri` has to say so for them to be here.
    for issuer in settings.auth.issuers if settings.auth is not None else ():
        stated = issuer.jwks_uri, issuer.exchange.token_endpoint if issuer.exchange else None
        for url in (issuer.issuer, *(one for one in stated if one is not None)):
            yield issuer.name, origin_of(url), issuer.allow_private
