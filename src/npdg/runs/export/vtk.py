"""VTK's XML image data (.vti): values on a regular grid, which ParaView, VisIt and pyvista open.

The format is a header and arrays in base64; writing it takes fewer lines than calling a library that would make a mesh
of unstructured cells out of a grid.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from npdg.runs.files import write_new


def write_image(path: Path, coordinates: Sequence[np.ndarray], fields: Mapping[str, np.ndarray]) -> None:
    """A new file with fields on the grid of the coordinates (evenly spaced, at most three), scalars or vectors.

    A scalar has the grid's shape; a vector has one more axis, of at most three components.
    """
    rank = len(coordinates)
    sizes = [len(values) for values in coordinates] + [1] * (3 - rank)
    extent = " ".join(f"0 {size - 1}" for size in sizes)
    origin = [float(values[0]) for values in coordinates] + [0.0] * (3 - rank)
    spacing = [float((values[-1] - values[0]) / (len(values) - 1)) for values in coordinates] + [1.0] * (3 - rank)
    arrays = "".join(_array(name, np.asarray(values, "<f8"), rank) for name, values in fields.items())
    numbers = lambda values: " ".join(map(repr, values))
    text = (
        '<?xml version="1.0"?>\n'
        '<VTKFile type="ImageData" version="1.0" byte_order="LittleEndian" header_type="UInt64">\n'
        f'<ImageData WholeExtent="{extent}" Origin="{numbers(origin)}" Spacing="{numbers(spacing)}">\n'
        f'<Piece Extent="{extent}">\n<PointData Scalars={quoteattr(next(iter(fields)))}>\n{arrays}</PointData>\n'
        "</Piece>\n</ImageData>\n</VTKFile>\n"
    )
    write_new(path, text)


def write_series(path: Path, files: Mapping[float, str]) -> None:
    """A new .pvd file: which file is of which time."""
    rows = "".join(f'<DataSet timestep="{time!r}" part="0" file={quoteattr(name)}/>\n' for time, name in files.items())
    head = '<?xml version="1.0"?>\n<VTKFile type="Collection" version="0.1">\n'
    write_new(path, f"{head}<Collection>\n{rows}</Collection>\n</VTKFile>\n")


def _array(name: str, values: np.ndarray, rank: int) -> str:
    # VTK's first coordinate moves fastest, and its vectors have three components.
    order = tuple(reversed(range(rank)))
    components = ""
    if values.ndim > rank:
        padded = np.zeros((*values.shape[:-1], 3), "<f8")
        padded[..., : values.shape[-1]] = values
        values, order, components = padded, (*order, rank), ' NumberOfComponents="3"'
    data = np.transpose(values, order).tobytes()
    encoded = base64.b64encode(struct.pack("<Q", len(data)) + data).decode()
    return f'<DataArray type="Float64" Name={quoteattr(name)}{components} format="binary">{encoded}</DataArray>\n'
