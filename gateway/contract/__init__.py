"""The contract room: a YAML file to a frozen `Contract`, or to every refusal at once. Knows no call and no socket."""

from gateway.contract.load import load
from gateway.contract.model import Contract
from gateway.contract.refusal import Refusal

__all__ = ["Contract", "Refusal", "load"]
