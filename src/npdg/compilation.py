"""How programs are compiled, and where they are kept from one run to the next: in the user's cache directory."""

import functools
import hashlib
import os
import platform
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

LARGEST = 2**30  # Bytes of kept programs, above which the oldest are removed.
FEWEST_SECONDS = 0.05  # Seconds of a compilation below which its program is not kept.
# On a CPU a step's time is that of matrix products and factorisations, which are libraries' code. What XLA makes of
# the rest is as fast with these, and compiled in a third of the time (docs/notebook.md).
QUICK: dict[str, bool | int] = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 1}
MOST_SUBJECTS = 8  # Objects for which programs are kept in a process.
_told: list[Path | None] = []


def jit(function: Callable[..., Any], **options: Any) -> Any:
    """`jax.jit`, with the options by which a CPU's programs are compiled quickly."""
    return jax.jit(function, compiler_options=compiler_options(), **options)


def once_for_each(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of one object that is called once for it: what it made, such as a program, is kept for a while.

    Objects are told apart by identity: an equation is made of functions, which have no other.
    """
    made: dict[int, tuple[Any, Any]] = {}

    @functools.wraps(make)
    def kept(subject: Any) -> Any:
        if id(subject) not in made:
            result = make(subject)
            while len(made) >= MOST_SUBJECTS:
                made.pop(next(iter(made)))
            made[id(subject)] = subject, result  # holding the subject, whose identity is nobody else's then
        return made[id(subject)][1]

    return kept


@functools.cache
def compiler_options() -> dict[str, bool | int] | None:
    """The options for this machine; none on another processor than a CPU, or where this version of XLA lacks them."""
    if jax.default_backend() != "cpu":
        return None
    try:
        jax.jit(lambda x: x + 1, compiler_options=QUICK).lower(0.0).compile()
    except Exception:  # whatever a version raises for an option that it does not know
        return None
    return QUICK


def keep_programs() -> Path | None:
    """Let jax keep what it compiles, once a process; where, or nothing if it may not or was told otherwise.

    Programs are code: they are read from a directory alone that is the user's own, and that nobody else can write to.
    """
    if not _told:
        _told.append(_told_jax())
    return _told[0]


def programs_directory() -> Path:
    """Where the programs for this machine and this version of jax are."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    about = f"{version('jaxlib')} {sys.version} {platform.machine()} {_processor()}"
    return home / "npdg" / "programs" / hashlib.sha256(about.encode()).hexdigest()[:16]


def remove_programs() -> int:
    """Remove all kept programs, of other machines and versions too; how many bytes they had."""
    directory, size = programs_directory().parent, 0
    for path in directory.glob("*/*"):
        with suppress(OSError):
            size += path.lstat().st_size
            path.unlink()
    return size


def _told_jax() -> Path | None:
    values = jax.config.values
    if values["jax_compilation_cache_dir"] or not values["jax_enable_compilation_cache"]:
        return None
    try:
        directory = programs_directory()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _own(directory):
            return None
        _bound(directory)
    except (OSError, RuntimeError):  # no home, or one that cannot be written: every run compiles anew
        return None
    from jax.experimental.compilation_cache.compilation_cache import reset_cache

    jax.config.update("jax_compilation_cache_dir", str(directory))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", FEWEST_SECONDS)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    reset_cache()  # what was compiled before this was compiled without it
    return directory


def _own(directory: Path) -> bool:
    about = directory.lstat()
    if not stat.S_ISDIR(about.st_mode):
        return False
    return os.name == "nt" or (about.st_uid == os.getuid() and not about.st_mode & 0o022)


def _bound(directory: Path) -> None:
    """Remove the programs that were not used for longest, until the rest is small enough."""
    found = []
    for path in directory.iterdir():
        with suppress(OSError):
            found.append((path.lstat().st_mtime, path.lstat().st_size, path))
    size = sum(bytes_ for _, bytes_, _ in found)
    for _, bytes_, path in sorted(found):
        if size <= LARGEST:
            return
        with suppress(OSError):
            path.unlink()
            size -= bytes_


def _processor() -> str:
    """What a processor can do, by which compiled code differs."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return platform.processor()
