"""Every kind there is."""

from planted import kinds as planted_kinds
from support.real_traces import FOLDER

from . import call_kinds, device_kinds, host_kinds, quiet_kinds, rank_kinds, server_kinds
from .cases import KINDS

MODULES = (host_kinds, call_kinds, device_kinds, rank_kinds, quiet_kinds, server_kinds)
assert all(name in planted_kinds.NAMES or any(hasattr(module, name) for module in MODULES) for name in KINDS)


def recordable() -> list[str]:
    """The kinds that can be recorded here: those that are planted in real recordings need them."""
    return [name for name in KINDS if FOLDER.exists() or name not in planted_kinds.NAMES]
