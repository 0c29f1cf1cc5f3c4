"""`toolview import openapi`: a description of an API to a contract that `toolview check` accepts.

`description` reads the files, `swagger2` and `openapi3` bring them to one `normal` form, `translate` makes 2020-12 of
their schemas, `operation` makes a contract's endpoint of an operation, `yaml_text` writes it, and `importing` does all
of it in order. Nothing here is known to what serves.
"""
