#!/bin/sh
# Writes the locks under deploy/locks from pyproject.toml and the .in files beside them; `make lock` calls it.
# The image has the project's extras too, but for `test`: whoever runs it cannot install them. Versions that are locked already stay; `make lock UPGRADE=--upgrade` takes the newest that the ranges allow.
set -eu
uv="$1"
shift
cd "$(dirname "$0")/.."
extras=$("$(dirname "$uv")/python" -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]
print(*(f"--extra={name}" for name in project["optional-dependencies"] if name != "test"))')
for name in runtime build checks supply; do
    case $name in runtime) from="$extras pyproject.toml" ;; *) from=deploy/locks/$name.in ;; esac
    # shellcheck disable=SC2086 # $from may be several words
    "$uv" pip compile --quiet "$@" --universal --python-version 3.11 --generate-hashes --no-header \
        --no-annotate --no-emit-index-url --no-emit-find-links -o "deploy/locks/$name.txt" $from
done
