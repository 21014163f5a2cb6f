"""Tensors in files, in the safetensors format, which Hugging Face's tools and others read and write.

rl.save({"w": w, "b": b}, "model.safetensors")
tensors = rl.load("model.safetensors", device="cuda")

The format: 8 bytes with the length of a JSON header, the header (name -> dtype, shape, begin and end in the data), the
elements in row-major order (github.com/huggingface/safetensors). Nothing in such a file is ever run. Numbers beside the
tensors lie in the header's metadata, as JSON under the name "rooflab.numbers".
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from ._core import Tensor, tensor
from ._in_words import in_words
from .files import readable, replacing

__all__ = ["load", "load_metadata", "load_with_metadata", "save"]

_TYPES = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "I64": np.int64,
    "I32": np.int32,
    "BOOL": np.bool_,
}
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}
_LONGEST_HEADER = 100_000_000
_OWN = "rooflab.numbers"
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
_MOST_DIMENSIONS = 8
_MOST_BITS = 2048  # of an integer: Python writes and reads that many as text


def _number(name: Any, value: Any) -> bool | int | float:
    """A number as one of Python's, which JSON can hold."""
    if isinstance(value, np.longdouble):
        return float(value)
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise ValueError(
            f"[save] {name}: expected an integer of at most {_MOST_BITS} bits, got {value.bit_length()} bits"
        )
    return value.item() if isinstance(value, np.generic) else value


@in_words
def save(
    tensors: Mapping[str, Tensor | float], path: str | os.PathLike, metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors to a safetensors file.

    Parameters
    ----------
    tensors : mapping of str to Tensor, int, float or bool
        Tensors of any dtype and layout, on any device with memory. Whether they require grad is not kept. Numbers, such
        as that of a step, come back as numbers.
    path : path
        Replaced if it exists, once all is written.
    metadata : mapping of str to str, optional
        Texts that the file carries.

    Raises
    ------
    TypeError
        For tensors that are not a mapping, a name or metadata that is not a text, a value that is neither tensor nor
        number, or something that is not a path.
    ValueError
        For a tensor named __metadata__, or metadata named rooflab.numbers. For a name or a text that UTF-8 cannot hold.
    OSError
        When the file cannot be written.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.save({"w": rl.ones(2, 3, dtype="bfloat16")}, "example.safetensors")
    >>> rl.load("example.safetensors")["w"].shape
    (2, 3)
    """
    _check_path("save", path)
    if not isinstance(tensors, Mapping):
        raise TypeError(f"[save] tensors: expected a dict of names and tensors, got {type(tensors).__name__}")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise TypeError(f"[save] metadata: expected a dict of texts, got {type(metadata).__name__}")
    header: dict[str, Any] = {}
    numbers = {name: _number(name, value) for name, value in tensors.items() if isinstance(value, _NUMBERS)}
    if metadata and _OWN in metadata:
        raise ValueError(f"[save] metadata: the name {_OWN} is that of the numbers among the tensors")
    if metadata or numbers:
        metadata = metadata or {}
        if not all(isinstance(text, str) for item in metadata.items() for text in item):
            raise TypeError("[save] metadata: expected texts")
        header["__metadata__"] = dict(metadata) | ({_OWN: json.dumps(numbers)} if numbers else {})
    arrays, end = [], 0
    for name, value in tensors.items():
        if name == "__metadata__":
            raise ValueError("[save] tensors: the format keeps the name __metadata__ for itself")
        if not isinstance(name, str):
            raise TypeError(f"[save] tensors: expected texts as names, got {name!r}")
        if not isinstance(value, (Tensor, *_NUMBERS)):
            kind = type(value).__name__
            hint = f'; write {{"{name}." + key: value ...}} for its items' if isinstance(value, Mapping) else ""
            raise TypeError(f"[save] {name}: expected a tensor or number, got {kind}{hint}")
        if not isinstance(value, Tensor):
            continue
        array = value.detach().cpu().contiguous().numpy()
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [end, end + array.nbytes],
        }
        arrays.append(array)
        end += array.nbytes
    for said in (*header.get("__metadata__", {}).items(), tensors):
        for name in said:
            _check_text(name)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the data begins at a multiple of 8
    with replacing(path) as unfinished, open(unfinished, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in arrays:
            file.write(array.reshape(-1).view(np.uint8).data)


@in_words
def load(path: str | os.PathLike, device: str = "cpu") -> dict[str, Any]:
    """Read the tensors of a safetensors file, and the numbers that `save` put beside them.

    Parameters
    ----------
    path : path
        What `save`, or another program, wrote.
    device : str
        Where the tensors go.

    Returns
    -------
    dict of str to Tensor
        In the order of the file; then the numbers.

    Raises
    ------
    ValueError
        When the file is not a safetensors file or is cut off, when its tensors share bytes, leave some out or have a
        name twice, and for a dtype that no tensor has.
    OSError
        When there is no file, or a pipe, a socket or a device in its place.
    TypeError
        For something that is not a path.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.save({"w": rl.ones(2)}, "example.safetensors")
    >>> rl.load("example.safetensors")
    {'w': tensor([1., 1.])}
    """
    return load_with_metadata(path, device)[0]


def load_with_metadata(path: str | os.PathLike, device: str = "cpu") -> tuple[dict[str, Any], dict[str, str]]:
    """What `load` and `load_metadata` give, of one file: between two calls another file may take its place.

    Parameters
    ----------
    path : path
        What `save`, or another program, wrote.
    device : str
        Where the tensors go.

    Returns
    -------
    dict of str to Tensor, dict of str to str
        Tensors and numbers; texts.

    Raises
    ------
    ValueError, OSError, TypeError
        As `load` does.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.save({"w": rl.ones(2)}, "example.safetensors", {"step": "12"})
    >>> load_with_metadata("example.safetensors")
    ({'w': tensor([1., 1.])}, {'step': '12'})
    """
    metadata, places, data = _read(path)
    try:
        own = metadata.pop(_OWN, None)
        numbers = {} if own is None else json.loads(own, object_pairs_hook=_with_each_name_once)
        if not isinstance(numbers, dict) or not all(
            isinstance(value, (bool, int, float)) for value in numbers.values()
        ):
            raise ValueError("no dict of numbers")
        if twice := numbers.keys() & places.keys():
            raise ValueError(f"{min(twice)!r} is a tensor too")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"[load] {os.fspath(path)}: the numbers in the header are damaged ({error})") from error
    tensors = {name: tensor(place.array(data), device=device) for name, place in places.items()}
    return tensors | numbers, metadata


def load_metadata(path: str | os.PathLike) -> dict[str, str]:
    """The texts that a safetensors file carries besides its tensors.

    Parameters
    ----------
    path : path
        What `save`, or another program, wrote.

    Returns
    -------
    dict of str to str
        Empty where there are none.

    Raises
    ------
    ValueError, OSError, TypeError
        As `load` does.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.save({"w": rl.ones(2)}, "example.safetensors", {"step": "12"})
    >>> load_metadata("example.safetensors")
    {'step': '12'}
    """
    metadata, _, _ = _read(path)
    return {name: text for name, text in metadata.items() if name != _OWN}


def _check_text(text: str) -> None:
    """Half of a surrogate pair is no character: other programs read no file with one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"[save] expected names and texts that UTF-8 can hold, got {text!r}") from None


def _check_path(name: str, path: object) -> None:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"[{name}] path: expected the name of a file, got {type(path).__name__}")


def _read(path: str | os.PathLike) -> tuple[dict[str, str], dict[str, _Place], np.ndarray]:
    """Metadata, the place of each tensor, and the bytes of the data."""
    _check_path("load", path)
    readable(path)
    data = np.memmap(path, np.uint8, "r") if os.path.getsize(path) else np.empty(0, np.uint8)
    length = int.from_bytes(data[:8].tobytes(), "little")
    if len(data) < 8 or not 2 <= length <= min(len(data) - 8, _LONGEST_HEADER):
        cut = len(data) > 8 and data[8] == ord("{")
        kind = "with a header that is cut short" if cut else "of something else"
        raise ValueError(f"[load] {os.fspath(path)}: expected a safetensors file, got {len(data)} bytes {kind}")
    try:
        header = json.loads(data[8 : 8 + length].tobytes().decode(), object_pairs_hook=_with_each_name_once)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"[load] {os.fspath(path)}: the header is damaged ({error!r})") from error
    try:
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        metadata = {str(name): str(text) for name, text in header.get("__metadata__", {}).items()}
        places = {
            name: _Place(f"{os.fspath(path)}: {name}", entry, len(data) - 8 - length) for name, entry in entries.items()
        }
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"[load] {os.fspath(path)}: the header is damaged ({error!r})") from error
    _check_order(os.fspath(path), places, len(data) - 8 - length)
    return metadata, places, data[8 + length :]


def _with_each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{name!r} is there twice")
    return found


def _check_order(path: str, places: Mapping[str, _Place], room: int) -> None:
    """Refuse tensors that share bytes, and bytes of no tensor: the format has neither, so what it says is not right."""
    end = 0
    for name, place in sorted(places.items(), key=lambda item: (item[1].begin, item[1].end)):
        if place.begin != end:
            raise ValueError(
                f"[load] {path}: {name}: expected it to begin at byte {end} of the data, got {place.begin}"
            )
        end = place.end
    if end != room:
        raise ValueError(f"[load] {path}: expected {end} bytes of data, as the header says, got {room}")


class _Place:
    """Where an entry of the header says that a tensor lies, among `room` bytes of data."""

    def __init__(self, name: str, entry: dict[str, Any], room: int) -> None:
        kind, self.shape, offsets = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        if kind not in _TYPES:
            raise ValueError(f"[load] {name}: expected one of {', '.join(_TYPES)}, got {kind}")
        self.dtype = np.dtype(_TYPES[kind])
        if len(self.shape) > _MOST_DIMENSIONS:
            raise ValueError(f"[load] {name}: expected at most {_MOST_DIMENSIONS} dimensions, got {len(self.shape)}")
        if not all(type(number) is int for number in (*self.shape, *offsets)):
            raise ValueError(f"[load] {name}: expected whole numbers, got shape {self.shape} and bytes {offsets}")
        if not all(0 <= size < 2**63 for size in self.shape) or math.prod(filter(None, self.shape)) >= 2**60:
            raise ValueError(f"[load] {name}: expected sizes of 0 to 2^60 elements together, got {self.shape}")
        if len(offsets) != 2 or not 0 <= offsets[0] <= offsets[1] <= room:
            raise ValueError(
                f"[load] {name}: expected data within the file, got bytes {offsets} of {room}: is it cut short?"
            )
        self.begin, self.end = offsets
        expected = math.prod(self.shape) * self.dtype.itemsize
        if self.end - self.begin != expected:
            raise ValueError(f"[load] {name}: expected {expected} bytes, got {self.end - self.begin}")

    def array(self, data: np.ndarray) -> np.ndarray:
        content = data[self.begin : self.end].tobytes()
        flat = np.frombuffer(content, np.uint8) != 0 if self.dtype == np.bool_ else np.frombuffer(content, self.dtype)
        return flat.reshape(self.shape)
