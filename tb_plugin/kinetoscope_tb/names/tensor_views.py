"""Operators that compute nothing: they return a view of their input, or the input itself."""

_VIEWS = frozenset(
    f"aten::{name}"
    for name in (
        *("as_strided", "view", "t", "transpose", "permute", "expand", "select", "slice", "unsqueeze", "squeeze"),
        *("detach", "alias", "narrow", "_reshape_alias", "resolve_conj", "resolve_neg"),
    )
)


def is_view(name: str) -> bool:
    """Whether an operator of this name is one; of complex numbers, `aten::resolve_conj` may copy."""
    return name in _VIEWS
