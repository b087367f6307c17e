"""Numbers, sizes and names as text."""

from __future__ import annotations

import re
from typing import Any

LETTERS = {
    "batch": "B",
    "time": "T",
    "source": "S",
    "source_time": "S",
    "height": "H",
    "width": "W",
    "channels": "C",
}
"""The usual letters of axes."""
NARROW = "\u00a0"
"""The separator of thousands."""
CAPITALS = {
    one.lower().replace("-", ""): one
    for one in (
        "AdaIN", "AdaLN", "ALiBi", "BatchNorm", "BCE", "BiFPN", "CNN", "CRF", "CTC", "DCGAN", "DDPM", "FFN", "FFT", "FPN",
        "DETR", "GAN", "GAT", "GCN", "HED", "HRNet", "MMoE", "NTM",
        "GELU", "GLU", "GPT", "GQA", "GRU", "ISAB", "KL", "KV", "LM", "LoRA", "LRU", "LSTM", "MAB", "MAE", "MBConv", "MHA", "MLM",
        "MLP", "MoE", "MQA", "MSE", "NLP", "PMA", "QKV", "ReLU", "RG", "RGB", "RNN", "RoPE", "RPN", "SAB", "SiLU", "SSD", "SSM",
        "SwiGLU", "TCN", "VAE", "VL", "VQ", "XL", "AlexNet", "BERT", "CoAtNet", "ConvNeXt", "DenseFormer", "DenseNet",
        "EfficientNet", "GoogLeNet", "InfoNCE", "LayerNorm", "LeNet", "MobileNet", "N-BEATS", "NASNet", "PixelCNN",
        "CenterNet", "PlaNet", "PointNet", "RegNet", "RetinaNet", "ResNet", "ResNeXt", "RMSNorm", "SqueezeNet", "StyleGAN",
        "Transformer", "U-Net", "U-ViT", "VGG", "ViT", "WaveNet", "WGAN", "XLNet", "YOLO",
    )
}  # fmt: skip
"""Words of the field that are not written as others are, by their small letters without hyphens."""


def number(value: float) -> str:
    """Return a number with all of its digits: `10000`, `1e-05`, `0.1`.

    Args:
        value: The number.

    Examples:
        >>> from blocks.core import number
        >>> number(10000.0)
        '10000'
    """
    return str(int(value)) if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15) else repr(value)


def grouped(value: float) -> str:
    """Return a number with separated thousands, from five digits on: `4096`, `14 336`.

    Args:
        value: The number.

    Examples:
        >>> from blocks.core import grouped
        >>> grouped(4096)
        '4096'
    """
    text = number(value)
    return f"{int(text):,}".replace(",", NARROW) if text.isdigit() and len(text) > 4 else text


def size(dim: Any) -> str:
    """Return the size of an axis as text: `4096`, `T + 1`.

    Args:
        dim: A number, or an expression of the model's axes.

    Examples:
        >>> from blocks.core import size
        >>> size("time + 1"), size("(time + 3) // 4")
        ('T + 1', 'ceil(T / 4)')
    """
    if isinstance(dim, int):
        return grouped(dim)
    text = re.sub(r"[A-Za-z_]\w*", lambda found: LETTERS.get(found[0], found[0]), str(dim))
    return re.sub(r"\(([^()]+?)(?: \+ (\d+))?\) // (\d+)", _rounded, text)


def _rounded(found: re.Match[str]) -> str:
    """Return a quotient that is rounded up as such: of (n + d - 1) // d, that is n / d."""
    dividend, more, divisor = found[1], int(found[2] or 0), int(found[3])
    if more != divisor - 1:
        return found[0]
    return f"ceil({f'({dividend})' if ' ' in dividend else dividend} / {divisor})"


def spoken(name: str) -> str:
    """Return a name of a recipe as a title, with the capitals of the field; a word with capitals stays as its author wrote it.

    Args:
        name: The name.

    Examples:
        >>> from blocks.core import spoken
        >>> spoken("cross_attention"), spoken("lstm_lm"), spoken("mobilenet_v2")
        ('Cross attention', 'LSTM LM', 'MobileNet v2')
    """
    words = re.sub(r"(?<=[a-z]{2})(?=\d)", " ", name.replace("_", " ").strip())
    said = " ".join(CAPITALS.get(word, word) for word in words.split(" "))
    return said[:1].upper() + said[1:]
