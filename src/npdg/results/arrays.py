"""Trees of arrays as named arrays, for files: a leaf is named by its place in the tree."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from npdg.errors import InputError


def to_arrays(tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a tree by their places in it; random keys as their numbers."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(where): np.asarray(_numbers(leaf)) for where, leaf in leaves}


def from_arrays(template: Any, arrays: Mapping[str, np.ndarray], path: Path) -> Any:
    """A tree like the template with these arrays, which must be all of its and no others, in its own precision."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(template)
    names = [jax.tree_util.keystr(where) for where, _ in leaves]
    for name in sorted(set(names) ^ set(arrays)):
        what = "not asked for" if name in arrays else "missing"
        raise InputError(f"run: {path} does not fit config.toml: the array {name} is {what}.")
    filled = []
    for name, (_, leaf) in zip(names, leaves, strict=True):
        wanted, found = _numbers(leaf), arrays[name]
        if found.shape != wanted.shape or found.dtype != wanted.dtype:
            raise InputError(
                f"run: {path} does not fit config.toml: {name} is {found.dtype}{list(found.shape)}, not "
                f"{wanted.dtype}{list(wanted.shape)}."
            )
        value = jnp.asarray(found)
        filled.append(jax.random.wrap_key_data(value, impl=jax.random.key_impl(leaf)) if _is_key(leaf) else value)
    return jax.tree_util.tree_unflatten(structure, filled)


def filled(template: Any, arrays: Mapping[str, np.ndarray], path: Path) -> Any:
    """A tree like the template with saved arrays in place of its own, rounded to its precision."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(template)
    found = []
    for where, leaf in leaves:
        key = jax.tree_util.keystr(where)
        if key not in arrays or arrays[key].shape != np.shape(leaf):
            raise InputError(f"load: {path} does not fit its config.toml: {key} is missing or of another shape.")
        found.append(jnp.asarray(arrays[key], dtype=jnp.result_type(leaf)))
    return jax.tree_util.tree_unflatten(structure, found)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _numbers(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf
