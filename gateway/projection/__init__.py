"""The projection room: full answer to shown answer, by JMESPath or by an operator's function in a worker process."""

from gateway.projection.expression import compile_jmespath, lost_arguments
from gateway.projection.model import Projected, Projection, ProjectionFault, Reason, Sources
from gateway.projection.reference import import_python
from gateway.projection.sources import read_sources

__all__ = [
    "Projected",
    "Projection",
    "ProjectionFault",
    "Reason",
    "Sources",
    "compile_jmespath",
    "import_python",
    "lost_arguments",
    "read_sources",
]
