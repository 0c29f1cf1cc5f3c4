"""JSON Schema 2020-12 compiled to functions: check, cut, fill, bundle, and whether one schema fits another.

The only room that speaks JSON Schema. It knows no contract, no call, no file and no network.
"""

from gateway.json_pointer import pointer_of
from gateway.schema.bundle import bundle
from gateway.schema.fit import Fits, No, Unknown, Yes, fits, fits_slice
from gateway.schema.schema import Schema, compile_schema
from gateway.schema.stripped import faults_of_cutting
from gateway.schema.violation import SchemaFault, Violation

__all__ = [
    "Fits",
    "No",
    "Schema",
    "SchemaFault",
    "Unknown",
    "Violation",
    "Yes",
    "bundle",
    "compile_schema",
    "faults_of_cutting",
    "fits",
    "fits_slice",
    "pointer_of",
]
