"""Tensors in safetensors files, and files that are not safetensors files."""

import io
import json
import os
from types import SimpleNamespace

import numpy as np
import pytest

import rooflab as rl
from rooflab import serialization
from rooflab.serialization import load_metadata

DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "bool"]


def test_what_is_saved_is_loaded(tmp_path, device):
    path = tmp_path / "model.safetensors"
    saved = {f"{dtype} ü": rl.rand(3, 5, device=device).add_(0.4).to(dtype) for dtype in DTYPES}
    saved |= {"view": rl.arange(24).reshape(4, 6).T[::2], "scalar": rl.tensor(2.5), "empty": rl.zeros(0, 3)}
    saved["leaf"] = rl.ones(2, requires_grad=True)
    rl.save(saved, path, {"format": "pt"})
    loaded = rl.load(path, device=device)
    assert list(loaded) == list(saved)
    for name, tensor in saved.items():
        assert (loaded[name].shape, loaded[name].dtype) == (tensor.shape, tensor.dtype)
        assert loaded[name].device.startswith(device)
        assert loaded[name].tolist() == tensor.tolist()
    assert list(tmp_path.iterdir()) == [path]


def test_texts_beside_the_tensors_are_read(tmp_path):
    path = tmp_path / "model.safetensors"
    rl.save({"a": rl.ones(2)}, path, {"step": "12", "ü": "\n"})
    assert load_metadata(path) == {"step": "12", "ü": "\n"}
    rl.save({"a": rl.ones(2)}, path)
    assert load_metadata(path) == {}
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="expected data within the file"):
        load_metadata(path)


def test_the_file_is_laid_out_as_the_format_says(tmp_path):
    path = tmp_path / "two.safetensors"
    rl.save({"a": rl.tensor([1.0, 2.0]), "b": rl.tensor([True, False, True])}, path)
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    assert length % 8 == 0
    assert json.loads(raw[8 : 8 + length]) == {
        "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        "b": {"dtype": "BOOL", "shape": [3], "data_offsets": [8, 11]},
    }
    assert raw[8 + length :] == np.array([1, 2], "<f4").tobytes() + bytes([1, 0, 1])


def file_of(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def test_a_header_may_have_100_million_bytes_and_no_more(tmp_path, monkeypatch):
    """As in the format's own library. A file that claims more is not read to its end."""
    read = []
    loads = SimpleNamespace(loads=lambda text, **_: read.append(len(text)) or {}, JSONDecodeError=json.JSONDecodeError)
    monkeypatch.setattr(serialization, "json", loads)
    for length, is_read in [(100_000_000, True), (100_000_001, False)]:
        path = tmp_path / "long.safetensors"
        with path.open("wb") as file:
            file.write(length.to_bytes(8, "little"))
            file.truncate(8 + length)  # of which the file system stores nothing
        read.clear()
        if is_read:
            assert rl.load(path) == {} and read == [length]
        else:
            with pytest.raises(ValueError, match="expected a safetensors file"):
                rl.load(path)
            assert read == []


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "expected a safetensors file, got 0 bytes"),
        (b"abc", "expected a safetensors file"),
        (file_of({}, length=2**60), "expected a safetensors file"),
        (file_of(b"{not json"), "the header is damaged"),
        (file_of(b"[1, 2]"), "the header is damaged"),
        (file_of(b"\xff\xff\xff"), "the header is damaged"),
        (file_of({"a": {"dtype": "F32", "shape": [2]}}), "the header is damaged"),
        (file_of({"a": {"dtype": "F32", "shape": ["2"], "data_offsets": [0, 8]}}, bytes(8)), "expected whole numbers"),
        (file_of({"a": {"dtype": "F32", "shape": [0, 2**70], "data_offsets": [0, 0]}}), r"expected sizes of 0 to"),
        (file_of({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4, 4]}}, bytes(4)), "within the file"),
        (file_of({"a": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}}, bytes(2)), "got F8_E4M3"),
        (file_of({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, bytes(7)), "within the file"),
        (file_of({"a": {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}}, bytes(8)), "within the file"),
        (file_of({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, bytes(8)), "expected 12 bytes, got 8"),
        (
            file_of({"a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}}, bytes(8)),
            r"\[load\] /.*: a: expected",
        ),
    ],
)
def test_damaged_files_are_refused(tmp_path, raw, message):
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(raw)
    with pytest.raises(ValueError, match=rf"\[load\] .*{message}" if "load" not in message else message):
        rl.load(path)


def entry(begin, end):
    return {"dtype": "I32", "shape": [(end - begin) // 4], "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"a": entry(0, 16), "b": entry(8, 24)}, "b: expected it to begin at byte 16 of the data, got 8"),
        ({"a": entry(0, 24), "b": entry(0, 24)}, "b: expected it to begin at byte 24 of the data, got 0"),
        ({"b": entry(16, 24), "a": entry(0, 12)}, "b: expected it to begin at byte 12 of the data, got 16"),
        ({"a": entry(4, 24)}, "a: expected it to begin at byte 0 of the data, got 4"),
        ({"a": entry(0, 16)}, "expected 16 bytes of data, as the header says, got 24"),
        ('{"a": [], "b": [], "a": []}', "'a' is there twice"),
        ('{"a": {"dtype": "F32", "dtype": "I32", "shape": [6], "data_offsets": [0, 24]}}', "'dtype' is there twice"),
        ({"__metadata__": {"rooflab.numbers": '{"a": 1}'}, "a": entry(0, 24)}, "'a' is a tensor too"),
        (json.dumps({"a": entry(0, 24)}).encode("utf-16"), "the header is damaged"),
    ],
)
def test_each_byte_is_of_one_tensor_and_each_name_is_there_once(tmp_path, header, message):
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(file_of(header.encode() if isinstance(header, str) else header, bytes(24)))
    with pytest.raises(ValueError, match=rf"^\[load\] {path}: .*{message}"):
        rl.load(path)


def test_tensors_may_lie_in_another_order_and_bytes_of_bool_count_as_true(tmp_path):
    path = tmp_path / "odd.safetensors"
    header = {"b": entry(8, 16), "none": entry(8, 8), "a": {"dtype": "BOOL", "shape": [8], "data_offsets": [0, 8]}}
    path.write_bytes(file_of(header, bytes([0, 2] * 4 + [1, 0, 0, 0] * 2)))
    loaded = rl.load(path)
    assert list(loaded) == ["b", "none", "a"] and loaded["b"].tolist() == [1, 1] and loaded["none"].shape == (0,)
    assert loaded["a"].sum().item() == 4


def test_what_is_no_path_is_refused():
    for call in (lambda buffer: rl.save({"w": rl.ones(2)}, buffer), rl.load):
        with pytest.raises(TypeError, match=r"^\[(save|load)\] path: expected the name of a file, got BytesIO$"):
            call(io.BytesIO())


def test_what_is_no_tensor_is_refused(tmp_path):
    for tensors, says in (
        ({"a": np.ones(2)}, r"\[save\] a: expected a tensor or number, got ndarray$"),
        ({"model": {"w": rl.ones(2)}}, r'\[save\] model: .*, got dict; write \{"model\." \+ key: value'),
        ({1: rl.ones(2)}, r"\[save\] tensors: expected texts as names, got 1"),
    ):
        with pytest.raises(TypeError, match=says):
            rl.save(tensors, tmp_path / "x")
    with pytest.raises(TypeError, match=r"\[save\] tensors: expected a dict of names and tensors, got Tensor"):
        rl.save(rl.ones(2), tmp_path / "x")
    with pytest.raises(TypeError, match=r"\[save\] metadata: expected texts"):
        rl.save({}, tmp_path / "x", {"a": 1})
    with pytest.raises(ValueError, match=r"\[save\] tensors: .*__metadata__"):
        rl.save({"__metadata__": rl.ones(2)}, tmp_path / "x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        rl.save({"a": rl.ones(2)}, tmp_path / "folder")
    (tmp_path / "folder").rmdir()
    with pytest.raises(FileNotFoundError):
        rl.load(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.peer
def test_safetensors_reads_and_writes_the_same(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "peer.safetensors"
    rl.save({"a": rl.arange(6).reshape(2, 3)}, path)
    assert safetensors.load_file(path)["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    safetensors.save_file({"b": np.eye(3, dtype=np.float32)}, path)
    assert rl.load(path)["b"].tolist() == np.eye(3).tolist()


def test_numbers_come_back_beside_tensors(tmp_path):
    path = tmp_path / "step.safetensors"
    given = {"step": 12, "loss": 0.25, "done": True, "last": float("inf"), "large": 2**70, "seen": np.int64(3)}
    rl.save({"w": rl.ones(2), **given}, path, {"author": "me"})
    found = rl.load(path)
    assert list(found) == ["w", *given] and {name: found[name] for name in given} == given
    assert {type(found[name]) for name in given} == {int, float, bool} and found["done"] is True
    assert serialization.load_metadata(path) == {"author": "me"}
    rl.save({"step": 1}, path)
    assert rl.load(path) == {"step": 1}
    for wrong in ({"a": 1j}, {"a": None}, {"a": "text"}, {1: 2}):
        with pytest.raises(TypeError, match=r"expected a tensor or number|expected texts as names"):
            rl.save(wrong, path)
    with pytest.raises(ValueError, match=r"the name rooflab.numbers is"):
        rl.save({"w": rl.ones(1)}, path, {"rooflab.numbers": "{}"})
    assert rl.load(path) == {"step": 1}
    with pytest.raises(ValueError, match=r"^\[save\] a: expected an integer of at most 2048 bits, got 2049 bits$"):
        rl.save({"a": 2**2048}, path)
    rl.save({"a": 2**2048 - 1}, path)
    assert rl.load(path) == {"a": 2**2048 - 1}


@pytest.mark.parametrize("text", ["[1]", "{", '{"a": "b"}', '{"a": null}', '{"a": 1, "a": 2}'])
def test_damaged_numbers_are_refused(text, tmp_path):
    path = tmp_path / "damaged.safetensors"
    header = json.dumps({"__metadata__": {"rooflab.numbers": text}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ValueError, match="the numbers in the header are damaged"):
        rl.load(path)


@pytest.mark.parametrize(
    "entry, says",
    [
        ({"data_offsets": [0.0, 8.0]}, "w: expected whole numbers, got shape (2,) and bytes [0.0, 8.0]"),
        ({"shape": [2.0]}, "w: expected whole numbers"),
        ({"shape": [True, 2]}, "w: expected whole numbers"),
        ({"shape": [0, 2**62, 2**62], "data_offsets": [0, 0]}, "w: expected sizes of 0 to 2^60 elements together"),
        ({"shape": [1] * 65 + [2]}, "w: expected at most 8 dimensions, got 66"),
        ("[" * 100_000, "the header is damaged"),
        ('{"w": ' + "9" * 5000 + "}", "the header is damaged"),
        ('{"__metadata__": {"rooflab.numbers": "' + "[" * 100_000 + '"}}', "the numbers in the header are damaged"),
    ],
)
def test_hostile_headers_are_refused_in_one_sentence(tmp_path, entry, says):
    path = tmp_path / "model.safetensors"
    whole = {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    text = (entry if isinstance(entry, str) else json.dumps({"w": whole["w"] | entry})).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8 * isinstance(entry, dict)))
    with pytest.raises(ValueError, match=r"^\[load\] ") as refused:
        rl.load(path)
    assert says in str(refused.value)


def test_a_header_that_is_cut_short_is_named(tmp_path):
    path = tmp_path / "model.safetensors"
    rl.save({"a": rl.ones(2)}, path)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(ValueError, match="got 20 bytes with a header that is cut short"):
        rl.load(path)


def test_metadata_is_a_dict_and_a_long_double_is_a_number(tmp_path):
    with pytest.raises(TypeError, match=r"\[save\] metadata: expected a dict of texts, got list"):
        rl.save({"a": rl.ones(2)}, tmp_path / "model.safetensors", ["format"])
    rl.save({"a": np.longdouble(1.5)}, tmp_path / "model.safetensors")
    assert rl.load(tmp_path / "model.safetensors") == {"a": 1.5}


@pytest.mark.parametrize(
    ("tensors", "metadata"), [({"\ud800": 1.0}, None), ({"a": 1.0}, {"\ud800": ""}), ({"a": 1.0}, {"b": "\udfff"})]
)
def test_names_and_texts_that_utf8_cannot_hold_are_refused(tensors, metadata, tmp_path):
    with pytest.raises(ValueError, match=r"^\[save\] expected names and texts that UTF-8 can hold, got '.ud"):
        rl.save(tensors, tmp_path / "model.safetensors", metadata)
    assert not list(tmp_path.iterdir())


def test_a_pipe_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is a pipe, a socket or a device"):
        rl.load(tmp_path / "pipe")
