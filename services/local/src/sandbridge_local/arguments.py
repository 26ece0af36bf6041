"""The command line's grammar."""

from __future__ import annotations

import argparse
from typing import get_args

from sandbridge_local.formats import PolicyFormat
from sandbridge_local.settings import OPTIONS

_ENGINE = ("engine", "runtime", "runsc", "allow-outdated-runsc")


def parser(version: str) -> argparse.ArgumentParser:
    """Return the parser of the `sandbridge` command; it exits with 2 on wrong usage."""
    root = argparse.ArgumentParser(
        prog="sandbridge",
        description="Turn an HTTP API with an OpenAPI document into a code-mode MCP endpoint.",
        allow_abbrev=False,
    )
    root.add_argument("--version", action="version", version=f"sandbridge {version}")
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")

    serve = _command(commands, "serve", "serve search_docs and execute over MCP (stdio unless --transport http)")
    _settings(serve, *(option.flag for option in OPTIONS))

    search = _command(commands, "search", "print what search_docs would answer")
    search.add_argument("query", metavar="QUERY")
    search.add_argument("--limit", type=int, default=5, metavar="N", help="full cards (1 to 20)")
    search.add_argument("--json", action="store_true", help="print the structured answer")
    _settings(search, "cache-dir")

    run = _command(commands, "run", "run one script as execute would")
    run.add_argument("file", metavar="FILE|-", help="the script, or - for standard input")
    run.add_argument("--dry-run", action="store_true", help="send only safe calls")
    run.add_argument("--check", action="store_true", help="check types first, and run nothing where there are mistakes")
    run.add_argument("--json", action="store_true", help="print the structured result")
    _settings(run, *_ENGINE, "egress-authority", "typescript", "timeout-ms", "memory-mib", "audit-file", "cache-dir")

    check = _command(commands, "check", "load the documents and say what was skipped, and why")
    check.add_argument("--json", action="store_true", help="print the report as JSON")

    policy = _command(commands, "egress-policy", "print what the endpoint may reach; its fingerprint on standard error")
    policy.add_argument(
        "--format",
        choices=get_args(PolicyFormat),
        default="json",
        help="json, or settings of the layer that should keep it",
    )
    _settings(policy, "mode", *_ENGINE, "egress-authority")

    client = _command(commands, "client", "write a typed client that stands alone")
    client.add_argument("--out", required=True, metavar="DIR", help="where client.mjs and client.d.ts go")

    init = _command(commands, "init", "print a commented starting file")
    init.add_argument("--kind", choices=("config", "deployment"), default="config")

    switch = commands.add_parser(
        "switch", help="switch execute or an API off and on in a running orchestrator", allow_abbrev=False
    )
    switch.add_argument("target", metavar="execute|api:NAME", help="what to switch")
    switch.add_argument("position", choices=("off", "on"), help="where to switch it")
    switch.add_argument(
        "--control", required=True, metavar="HOST:PORT", help="the control port; every address of the name is asked"
    )
    switch.add_argument(
        "--tls-dir", required=True, metavar="DIR", help="tls.crt, tls.key and ca.crt of a certificate for control"
    )

    audit = commands.add_parser(
        "audit", help="verify an audit trail, or make the pair of keys for one", allow_abbrev=False
    )
    audit.add_argument("action", choices=("verify", "keys"), help="what to do")
    audit.add_argument("files", nargs="*", metavar="FILE", help="the trail's files; for keys, the name of the pair")
    audit.add_argument("--key", metavar="FILE", help="the verifier's private key")
    audit.add_argument("--anchors", metavar="FILE", help="what the second place has kept; a whole log will do")
    audit.add_argument("--json", action="store_true", help="print the report as JSON")

    rules = _command(commands, "policy", "explain what is decided about an operation for a caller, and by which rule")
    rules.add_argument("action", choices=("explain",), help="what to do")
    rules.add_argument("--operation", required=True, metavar="KEY", help="the operation, such as orders:orders.cancel")
    rules.add_argument("--caller", metavar="SUBJECT", help="who calls; without it the local caller")
    rules.add_argument("--scope", action="append", default=[], metavar="SCOPE", help="a scope of the caller; repeat")
    rules.add_argument("--claim", action="append", default=[], metavar="NAME=VALUE", help="one of its claims; repeat")
    rules.add_argument("--arguments", metavar="JSON", help="the call's arguments: path, query, headers, cookies, body")
    rules.add_argument("--json", action="store_true", help="print the answer as JSON")
    _settings(rules, "mode")

    doctor = commands.add_parser("doctor", help="say which engines and protection layers work here", allow_abbrev=False)
    doctor.add_argument("--json", action="store_true", help="print the report as JSON")
    doctor.add_argument("--issuer", metavar="URL", help="look at an authorization server instead of this machine")
    _settings(doctor, "runsc", "allow-outdated-runsc")
    return root


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".", allow_abbrev=False)
    command.add_argument(
        "--openapi",
        action="append",
        default=[],
        metavar="[NAME=]PATH_OR_URL",
        help="an OpenAPI document; repeat with names for several APIs",
    )
    command.add_argument(
        "--base-url",
        action="append",
        default=[],
        metavar="[NAME=]URL",
        help="where the API is; the only place its key is sent to",
    )
    command.add_argument(
        "--allow-private",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="a private address that calls may reach",
    )
    command.add_argument("--config", metavar="FILE", help="settings file: the spec of an McpDeployment")
    return command


def _settings(command: argparse.ArgumentParser, *flags: str) -> None:
    for option in OPTIONS:
        if option.flag not in flags:
            continue
        if option.boolean:
            command.add_argument(f"--{option.flag}", action="store_true", default=None, help=option.help)
        else:
            command.add_argument(f"--{option.flag}", metavar="VALUE", help=f"{option.help} ({option.variable})")
