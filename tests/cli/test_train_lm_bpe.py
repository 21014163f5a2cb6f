"""`rooflab train lm --tokens bpe`: what the tokens are, that they travel with the checkpoint, and what is refused."""

import json
import sys

import pytest

import rooflab as rl
from rooflab.cli import main
from rooflab.serialization import load_metadata
from rooflab.training import BpeText, ByteText, LanguageModelTraining, tokenizer_of
from rooflab.training import bpe_text as implementation

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed: pip install '.[bpe]'")

SIZES = ["--d-model", "32", "--d-ff", "64", "--num-layers", "2", "--num-heads", "2", "--context-length", "16"]
TINY = [*SIZES, "--batch-size", "4", "--device", "cpu", "--tokens", "bpe"]
TEXT = "the quick brown fox jumps over the lazy dog,\nnaïve café 漢字 🙂 \n\n  and again.\n" * 20


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(TEXT.encode())
    return path


def train(text, *options):
    return main(["train", "lm", str(text), *TINY, *map(str, options)])


def tokens_of(text):
    return text._tokens.tolist()


def test_tokens_give_the_text_back_and_are_fewer_than_its_bytes():
    text = BpeText(TEXT.encode(), context_length=16, vocab_size=300)
    assert text.decode(tokens_of(text)) == TEXT
    assert text.vocab_size == 300 > max(tokens_of(text)) and text.bytes == len(TEXT.encode())
    assert len(text) < text.bytes / 2
    assert ByteText(TEXT.encode(), 16).digest != text.digest


def test_what_was_not_in_the_text_has_tokens_too():
    learnt = BpeText(TEXT.encode(), context_length=16, vocab_size=300)
    other = "Ünlike anything: 12345 \t\r\n ∑" * 3
    text = BpeText(other.encode(), 16, 300, learnt.tokenizer)
    assert text.decode(tokens_of(text)) == other and text.tokenizer == learnt.tokenizer


def test_the_first_merge_is_the_most_frequent_pair():
    text = BpeText(b"xy xy xy xz " * 10, context_length=4, vocab_size=257)
    assert json.loads(text.tokenizer)["model"]["merges"] == [["Ġ", "x"]]  # a space is written Ġ


def test_pieces_have_the_tokens_of_the_whole(monkeypatch):
    whole = BpeText(TEXT.encode(), context_length=16, vocab_size=310)
    monkeypatch.setattr(implementation, "_PIECE", 50)
    assert "".join(implementation._pieces(TEXT)) == TEXT
    assert len(list(implementation._pieces(TEXT))) == 20
    cut = BpeText(TEXT.encode(), context_length=16, vocab_size=310)
    assert (cut.tokenizer, cut.digest, tokens_of(cut)) == (whole.tokenizer, whole.digest, tokens_of(whole))


def test_a_run_in_pieces_is_the_run_in_one_to_the_bit(text, tmp_path, monkeypatch, capsys):
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    options = ["--steps", 5, "--every", 2, "--vocab-size", 300]
    assert train(text, *options, "--checkpoint", whole) == 0
    assert "20 bytes)" not in (out := capsys.readouterr().out) and f"({len(TEXT.encode()):,} bytes), on cpu" in out
    assert "5.704 nats a token" in out  # log(300)
    advance = LanguageModelTraining.advance

    def stops(self):
        if self.step == 3:
            raise KeyboardInterrupt
        return advance(self)

    with monkeypatch.context() as patch:
        patch.setattr(LanguageModelTraining, "advance", stops)
        assert train(text, *options, "--checkpoint", pieces) == 130
    with monkeypatch.context() as patch:
        patch.setattr(implementation, "_learnt", None)  # it is read, and not learnt again
        assert train(text, *options, "--checkpoint", pieces, "--resume") == 0
    assert whole.read_bytes() == pieces.read_bytes()
    assert rl.load(whole)["model.token_embeddings.weight"].shape == (300, 32)
    assert tokenizers.Tokenizer.from_str(tokenizer_of(whole)).get_vocab_size() == 300
    assert load_metadata(whole)["tokenizer"] == BpeText(TEXT.encode(), 16, 300).tokenizer


@pytest.mark.parametrize(
    ("data", "options", "says"),
    [
        (b"caf\xe9 " * 40, [], "expected UTF-8, got 0xe9 at byte 3"),
        (b"abcd " * 40, ["--vocab-size", 5000], "--vocab-size: expected at most 260, as "),
        (b"", ["--vocab-size", 300], "--vocab-size: expected at most 256, as "),
        (b"ab " * 8, ["--vocab-size", 257], "expected at least --context-length + 1 = 17 tokens, got 16"),
        (b"ab " * 99, ["--tokens", "bytes", "--vocab-size", 300], "--vocab-size: expected --tokens bpe too"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(data, options, says, text, capsys):
    text.write_bytes(data)
    assert train(text, *options) == 2
    error = capsys.readouterr().err
    assert error.startswith("rooflab train lm: ") and says in error and error.count("\n") == 1


def test_a_vocabulary_of_no_more_than_the_bytes_is_refused(text, capsys):
    with pytest.raises(SystemExit):
        train(text, "--vocab-size", 256)
    assert "expected a whole number of 257 or more" in capsys.readouterr().err
    with pytest.raises(ValueError, match="vocab_size: expected more than the 256 bytes, got 256"):
        BpeText(TEXT.encode(), 16, 256)


def test_checkpoints_of_other_tokens_are_refused(text, tmp_path, capsys):
    path = tmp_path / "w"

    def refused(*options):
        assert train(text, "--steps", 2, "--checkpoint", path, "--resume", *options) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        return error

    assert train(text, "--steps", 2, "--checkpoint", path, "--vocab-size", 300) == 0
    assert "--vocab-size: expected 300, as the tokenizer has that was learnt before, got 310" in refused(
        "--vocab-size", 310
    )
    assert "vocab_size=300 there and 256 here" in refused("--tokens", "bytes")
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b'\\"merges\\"', b'\\"berges\\"', 1))
    assert "tokenizer: expected what BpeText.tokenizer gives" in refused("--vocab-size", 300)
    assert train(text, "--steps", 2, "--checkpoint", path, "--tokens", "bytes") == 0
    assert "expected a checkpoint with a tokenizer, got one without" in refused("--vocab-size", 300)


def test_without_the_library_the_way_to_get_it_is_named(text, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert train(text) == 2
    assert capsys.readouterr().err == (
        "rooflab train lm: the package tokenizers is missing: pip install 'rooflab[bpe]'\n"
    )
