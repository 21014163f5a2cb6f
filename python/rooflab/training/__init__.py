"""Training a language model on a text of bytes or BPE tokens, with checkpoints from which it resumes bit for bit."""

from .bpe_text import BpeText, tokenizer_of
from .byte_text import ByteText
from .language_model import LanguageModelTraining, TrainingSettings
from .token_text import TokenText

__all__ = ["BpeText", "ByteText", "LanguageModelTraining", "TokenText", "TrainingSettings", "tokenizer_of"]
