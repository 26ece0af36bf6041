"""OpenAPI documents as frozen operations: names, requests, validation, types. Pure.

A document is read in this order: `syntax` turns bytes into one value (JSON, or YAML by `yaml_text`), `bundle` adds
the files it refers to, `document` reads the result into `model`. On that way `references` finds what a `$ref` means,
`schemas` makes every schema plain JSON Schema, `swagger2` brings the operations of Swagger 2.0 into the shape of
OpenAPI 3, and `names` gives each operation its call.
"""
