"""Training a language model on a text of bytes, with checkpoints from which it goes on to the bit."""

from .byte_text import ByteText
from .language_model import LanguageModelTraining, TrainingSettings

__all__ = ["ByteText", "LanguageModelTraining", "TrainingSettings"]
