"""OpenAPI documents as frozen operations: names, requests, validation, types. Pure."""
