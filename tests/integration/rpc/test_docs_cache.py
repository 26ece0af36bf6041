"""Docs search as a process with a place for its index: a second start takes the one that the first has made."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from deployments import Deployment
from rpc_serving import CONFIG
from service_processes import service

from sandbridge_kit.ports.docs import SearchRequest
from sandbridge_kit.rpc import Service, TlsSource
from sandbridge_orchestrator.adapters.docs_client import DocsClient


async def test_a_second_start_answers_from_the_index_that_the_first_one_kept(
    deployment: Deployment, tmp_path: Path
) -> None:
    config, kept = tmp_path / "config.yaml", tmp_path / "kept"
    config.write_text(CONFIG)
    folder = deployment.files(Service.DOCSEARCH).certificate.parent
    tls = TlsSource(deployment.files(Service.ORCHESTRATOR))
    answers, files = [], []
    for _ in range(2):
        async with service("sandbridge_docsearch", TLS_DIR=folder, CONFIG=config, CACHE_DIR=kept) as docs:
            async with DocsClient(await docs.address(), tls) as client:
                await asyncio.wait_for(client.wait_loaded(), 10)
                answers.append(await client.search(SearchRequest("delete an order")))
            docs.process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(docs.process.wait(), 10)
        # A new index would be another file under the old name; one that is read is the same file.
        files.append([(file.name, file.stat().st_ino) for file in kept.iterdir()])

    assert (answers[0], files[0], len(files[0])) == (answers[1], files[1], 1)
