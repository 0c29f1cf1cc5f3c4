"""The projection room: full answer to shown answer, by JMESPath or by an operator's function in a worker process."""

from gateway.projection.expression import compile_jmespath, lost_arguments
from gateway.projection.model import Projected, Projection, ProjectionFault, Reason
from gateway.projection.reference import import_python

__all__ = [
    "Projected",
    "Projection",
    "ProjectionFault",
    "Reason",
    "compile_jmespath",
    "import_python",
    "lost_arguments",
]
