"""Files: list, upload as a form or as raw bytes, download, delete."""

from __future__ import annotations

import hashlib
import re

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orders_service.data import Row, Store, StoredFile
from orders_service.problems import BODY_BYTES, Problem, not_found, read_bytes

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MOST_FILES = 200


def described(file: StoredFile) -> Row:
    """Return what the API says about a file."""
    return {
        "name": file.name,
        "media_type": file.media_type,
        "size": len(file.content),
        "sha256": hashlib.sha256(file.content).hexdigest(),
        "description": file.description,
    }


def _keep(store: Store, file: StoredFile) -> Response:
    if not NAME.fullmatch(file.name):
        raise Problem(400, f"A file's name has letters, digits, dots, dashes and underscores, not {file.name!r}.")
    if file.name not in store.files and len(store.files) >= MOST_FILES:
        raise Problem(409, f"At most {MOST_FILES} files are kept; delete some first.")
    store.files[file.name] = file
    return JSONResponse(described(file), 201, {"Location": f"/files/{file.name}"})


def _file(request: Request) -> StoredFile:
    name = request.path_params["name"]
    store: Store = request.app.state.store
    if name not in store.files:
        raise not_found("file", name)
    return store.files[name]


async def list_files(request: Request) -> Response:
    """All files by name, without their content."""
    files = request.app.state.store.files
    return JSONResponse({"items": [described(files[name]) for name in sorted(files)]})


async def upload_form(request: Request) -> Response:
    """Store the part `file` of a multipart form (RFC 7578)."""
    if int(request.headers.get("content-length", "0")) > BODY_BYTES:
        raise Problem(413, f"A body may have at most {BODY_BYTES} bytes.")
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise Problem(415, "Send multipart/form-data with a part named `file`.")
    try:
        form = await request.form(max_files=1, max_fields=5)
    except MultiPartException as error:
        raise Problem(400, error.message) from None
    upload, description = form.get("file"), form.get("description", "")
    if not isinstance(upload, UploadFile) or not isinstance(description, str):
        raise Problem(400, "The form needs a part `file` with a file name; `description` is text.")
    content = await upload.read()
    media_type = upload.content_type or "application/octet-stream"
    return _keep(request.app.state.store, StoredFile(upload.filename or "", media_type, content, description))


async def put_file(request: Request) -> Response:
    """Store the raw body under a name; replaces what was there."""
    content = await read_bytes(request)
    media_type = request.headers.get("content-type", "application/octet-stream")
    return _keep(request.app.state.store, StoredFile(request.path_params["name"], media_type, content))


async def get_file(request: Request) -> Response:
    """The bytes, as they were stored."""
    file = _file(request)
    headers = {"Content-Disposition": f'attachment; filename="{file.name}"', "Content-Type": file.media_type}
    return Response(file.content, headers=headers)


async def delete_file(request: Request) -> Response:
    """Remove a file."""
    del request.app.state.store.files[_file(request).name]
    return Response(status_code=204)


ROUTES = [
    Route("/files", list_files, methods=["GET"]),
    Route("/files", upload_form, methods=["POST"]),
    Route("/files/{name}", get_file, methods=["GET"]),
    Route("/files/{name}", put_file, methods=["PUT"]),
    Route("/files/{name}", delete_file, methods=["DELETE"]),
]
