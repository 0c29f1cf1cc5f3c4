#!/bin/sh
# Writes the locks under deploy/locks from pyproject.toml and the .in files beside them; `make lock` calls it.
# Versions that are locked already stay; `make lock UPGRADE=--upgrade` takes the newest that the ranges allow.
set -eu
uv="$1"
shift
cd "$(dirname "$0")/.."
for name in runtime build checks supply; do
    case $name in runtime) from=pyproject.toml ;; *) from=deploy/locks/$name.in ;; esac
    "$uv" pip compile --quiet "$@" --universal --python-version 3.11 --generate-hashes --no-header \
        --no-annotate --no-emit-index-url --no-emit-find-links -o "deploy/locks/$name.txt" "$from"
done
