"""Every kind there is."""

from . import call_kinds, device_kinds, host_kinds, quiet_kinds, rank_kinds, server_kinds
from .cases import KINDS

MODULES = (host_kinds, call_kinds, device_kinds, rank_kinds, quiet_kinds, server_kinds)
assert all(any(hasattr(module, name) for module in MODULES) for name in KINDS)
