"""Permissions that count for root too."""

import ctypes

_PR_CAPBSET_DROP, _VERSION = 24, 0x20080522  # linux/prctl.h, linux/capability.h
_OVERRIDE, _READ_SEARCH = 1, 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Sets(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable")]


def heed_permissions():
    """Let the permissions of files count for this process, and all that it starts, even if it is root's."""
    libc, header, sets = ctypes.CDLL(None, use_errno=True), _Header(_VERSION, 0), (_Sets * 2)()
    for capability in (_OVERRIDE, _READ_SEARCH):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # of what it starts; refused to all but root, who needs it
    assert libc.capget(ctypes.byref(header), sets) == 0
    for name, _ in _Sets._fields_:
        setattr(sets[0], name, getattr(sets[0], name) & ~(1 << _OVERRIDE | 1 << _READ_SEARCH))
    assert libc.capset(ctypes.byref(header), sets) == 0
