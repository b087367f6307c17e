"""What blocks, fields, keys and functions are called elsewhere, and what is written for those that have no name here."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping

from composer.language.recipe.free_names import IDENTIFIER

ELSEWHERE = {
    # blocks
    "attention": "attn mha multi_head_attention self_attention",
    "batchnorm": "batch_norm1d batch_normalization bn",
    "batchnorm2d": "batch_normalization bn2d",
    "binary_cross_entropy": "bce bce_loss bce_with_logits bce_with_logits_loss binary_crossentropy",
    "compute": "lambda average subtract sub divide div",
    "concat": "cat concatenate",
    "conv1d": "conv convolution1d",
    "conv2d": "conv convolution2d depthwise_conv2d",
    "conv_transpose1d": "deconv1d conv1d_transpose",
    "conv_transpose2d": "deconv2d conv2d_transpose upconv upconv2d",
    "cross_attention": "cross_attn encoder_decoder_attention",
    "cross_entropy": "nll_loss cross_entropy_loss categorical_crossentropy sparse_categorical_crossentropy softmax_cross_entropy",
    "ctc": "ctc_loss",
    "contrastive": "info_nce clip_loss",
    "dropout": "dropout1d dropout2d spatial_dropout spatial_dropout1d spatial_dropout2d dropout_rate drop_rate drop_prob",
    "einsum": "matmul bmm dot",
    "embedding": "lookup",
    "ffn": "mlp feed_forward",
    "gated_ffn": "glu swiglu geglu",
    "groupnorm": "group_normalization",
    "groupnorm2d": "group_normalization",
    "huber": "smooth_l1 smooth_l1_loss",
    "identity": "noop",
    "interpolate1d": "upsampling1d",
    "interpolate2d": "upsample upsampling2d resize interpolate",
    "l1_loss": "mae l1 mean_absolute_error",
    "l2norm": "normalize unit_norm",
    "latent_attention": "mla",
    "layernorm": "layer_normalization ln",
    "leaky_relu": "lrelu",
    "learned_positions": "position_embedding positional_embedding",
    "linear": "dense fc lin fully_connected",
    "max_pool1d": "max_pool max_pooling max_pooling1d",
    "max_pool2d": "max_pool max_pooling max_pooling2d",
    "mean_pool1d": "avg_pool avg_pool1d average_pooling1d average_pool1d",
    "mean_pool2d": "avg_pool avg_pool2d average_pooling2d average_pool2d",
    "mse": "l2 l2_loss mse_loss mean_squared_error",
    "multiply": "mul",
    "new_axis": "unsqueeze expand_dims",
    "one_hot": "onehot_encoding",
    "pad": "zero_padding1d zero_padding2d zero_pad2d constant_pad2d",
    "pool": "global_average_pooling1d global_avg_pool1d",
    "rearrange": "reshape view permute transpose",
    "relu_squared": "relu2",
    "residual": "skip shortcut skip_connection res_block resblock",
    "rmsnorm": "rms_normalization",
    "rnn": "simple_rnn elman",
    "rnn_cell": "simple_rnn_cell",
    "rotary": "rope",
    "scaled_dot_product": "sdpa scaled_dot_product_attention",
    "select": "squeeze",
    "silu": "swish",
    "sinusoidal_positions": "positional_encoding sinusoidal",
    # fields
    "activation": "nonlinearity act_fn hidden_act",
    "affine": "elementwise_affine",
    "axis": "dim",
    "bias": "use_bias with_bias",
    "dilation": "dilation_rate",
    "dim": "embedding_dim embed_dim output_dim hidden_size d_model",
    "eps": "epsilon variance_epsilon",
    "experts": "num_experts n_experts",
    "groups": "num_groups n_groups",
    "heads": "n_heads num_heads nhead n_head num_attention_heads",
    "hidden": "units hidden_size hidden_dim hidden_units d_ff dim_feedforward intermediate_size num_hidden",
    "kernel_size": "kernel pool_size size window_size",
    "kv_heads": "num_kv_heads n_kv_heads num_key_value_heads",
    "layers": "num_layers n_layers",
    "out": "units filters num_filters out_channels out_features output_dim n_out features dim num_outputs",
    "p": "rate prob dropout dropout_rate drop_rate drop_prob",
    "padding": "pad",
    "padding_idx": "mask_zero pad_id pad_token_id",
    "scale": "scale_factor",
    "size": "length output_size shape",
    "slope": "negative_slope alpha",
    "stride": "strides",
    "theta": "base rope_theta",
    "top_k": "num_experts_per_tok",
    "vocab": "num_embeddings vocab_size input_dim num_tokens",
    # keys
    "when": "if",
    "else": "otherwise",
}
"""Names here, each with what it is called elsewhere, in the spelling of words with `_`."""

INFERRED = "leave it out: what a block reads is inferred from what is wired"
INPUT_WIDTHS = "in_channels in_features input_dim input_size embed_dim normalized_shape num_features"
OTHER_FIELDS = {
    "causal": ("mask", "write mask: causal"),
    "is_causal": ("mask", "write mask: causal"),
    "activation": ("out", "make it a node of its own behind this one, such as `{type: relu}`"),
    "batch_first": ("", "leave it out: the batch is the first axis"),
    "inplace": ("", "leave it out"),
    "proj_size": ("hidden", "make the projection a `linear` behind it; where each step reads it, write the cell in a `scan`"),
    "return_sequences": ("", "leave it out: of all steps, `{type: select, axis: time, index: -1}` takes the last"),
    **dict.fromkeys(INPUT_WIDTHS.split(), ("", INFERRED)),
}
"""What is written in place of fields that blocks have elsewhere, each with a field that a block must have for it to apply."""
IMAGE_MEAN, IMAGE_MAX = (f"{{type: {kind}, axis: [-2, -1]}}" for kind in ("mean", "max"))
FORMS = {
    IMAGE_MEAN: "global_avg_pool global_average_pool global_average_pooling2d global_avg_pool2d gap",
    IMAGE_MAX: "global_max_pool global_max_pooling2d global_max_pool2d adaptive_max_pool2d adaptive_max_pool",
    f"{IMAGE_MEAN}, or for more than one place {{type: interpolate2d, mode: area, size: …}}":
        "adaptive_avg_pool2d adaptive_avg_pool adaptive_average_pool2d",
    "{type: mean, axis: time}, or `max` in its place": "adaptive_avg_pool1d adaptive_max_pool1d global_max_pooling1d",
    **{f"{{type: {kind}, bidirectional: true, …}}": f"bi{kind} bidirectional_{kind}" for kind in ("gru", "rnn")},
    "{type: lstm, bidirectional: true, …}": "bilstm bidirectional_lstm bidirectional",
    "{type: rearrange, pattern: b c h w -> b (c h w)}, with the axes that there are": "flatten",
    "{type: rearrange, pattern: b (c i j) h w -> b c (h i) (w j), lengths: {i: 2, j: 2}}": "pixel_shuffle",
    "`groupnorm2d`, or `groupnorm` where the channels are last, with as many `groups` as channels":
        "instance_norm instance_norm1d instance_norm2d instance_normalization",
    "a `conv2d` with as many `groups` as channels, and one with `kernel_size: 1`": "separable_conv2d depthwise_separable_conv2d",
    "a group: nodes below `graph:`, each of which reads the one above": "sequential module_list",
    "a `residual` around `attention` and one around `ffn`, as in the recipe `bert`": "transformer_encoder_layer encoder_layer",
    "a `residual` each around `attention`, `cross_attention` and `ffn`, as in the recipe `t5`":
        "transformer_decoder_layer decoder_layer",
    "an `embedding`, and `{type: mean, axis: …}` along the axis of the ids, or `sum`": "embedding_bag",
    "{compute: 'max(x, 0) + slope * min(x, 0)'}, with a node `slope: {type: parameter, shape: [1]}`": "prelu parametric_relu",
    "an `l2norm` of each, and an `einsum` of the two": "cosine_similarity",
    "an `einsum` of the inputs and a node `{type: parameter, shape: […]}`": "bilinear",
    "{type: rearrange, pattern: b c (h i) (w j) -> b (h w) (c i j), lengths: {i: …, j: …}}, for patches that do not overlap":
        "unfold im2col extract_patches",
    "a `scan` along `time` whose graph is one step, with what it carries": "recurrent rnn_base custom_rnn",
    "the block itself, which keeps the axes in front, or a `scan` along `time`": "time_distributed",
}  # fmt: skip
"""What is written in place of blocks that have another form here, with what these are called."""
NORMED_WEIGHTS = (
    "no block divides its weights by a norm; leave it out, and let `norm` or the optimizer's `weight_decay` keep them small"
)
NOT_HERE = dict.fromkeys(("weightnorm", "spectralnorm", "weightnormalization", "spectralnormalization"), NORMED_WEIGHTS)
"""What is said of blocks in place of which there is nothing here."""
OTHER_FUNCTIONS = {
    "pow": "a ** b", "power": "a ** b", "square": "x ** 2", "reciprocal": "1 / x", "maximum": "max(a, b)", "minimum": "min(a, b)",
    "clip": "clamp(x, low, high)", "log2": "log(x) / log(2)", "log10": "log(x) / log(10)", "exp2": "2 ** x", "fabs": "abs(x)",
    "tan": "sin(x) / cos(x)", "sinh": "(exp(x) - exp(-x)) / 2", "cosh": "(exp(x) + exp(-x)) / 2", "logit": "log(x / (1 - x))",
    "detach": "stop_gradient(x)", "heaviside": "float(x > 0)", "step": "float(x > 0)", "relu6": "clamp(x, 0, 6)",
    "hardtanh": "clamp(x, -1, 1)", "hardsigmoid": "clamp(x / 6 + 0.5, 0, 1)", "hardswish": "x * clamp(x / 6 + 0.5, 0, 1)",
    "mish": "x * tanh(softplus(x))", "softsign": "x / (1 + abs(x))", "expit": "sigmoid(x)", "arcsinh": "asinh(x)",
    "log_sigmoid": "logsigmoid(x)",
}  # fmt: skip
"""The formulas of functions and activations that have no name here."""
MODULES = re.compile(r"^(torch\.)?(nn\.functional|nn\.utils|nn|F)\.|^(tf\.)?keras\.layers\.")
LOG_SOFTMAX = "subtract a node `{type: logsumexp, axis: last}`; a loss of `type: cross_entropy` takes the scores themselves"
OF_IMAGES = {
    "pool": f"{IMAGE_MEAN} gives one number for each channel of an image, and `mean_pool2d` a smaller image",
}
"""What to write in place of a block that does not take images."""
IMAGE_AXES = 4
"""The axes of images: batch, channels, height and width."""
OTHER_KEYS = {
    ("a scan", "as"): "a scan has no index: a node `{type: arange, axis: time}` in front of it has the number of each step",
}
"""What to do in place of keys, each with what would have it."""


def plain(name: str) -> str:
    """Return a name without capitals, underscores and the module of a library, in which it differs from library to library."""
    return MODULES.sub("", name).lower().replace("_", "")


def _inverted() -> Mapping[str, tuple[str, ...]]:
    found = defaultdict[str, tuple[str, ...]](tuple)
    for here, others in ELSEWHERE.items():
        for other in map(plain, others.split()):
            found[other] += (here,)
    return dict(found)


OTHER_NAMES = _inverted()
"""What some blocks, fields and keys are called elsewhere, plain, each with the names here that it may mean."""
OTHER_BLOCKS = {plain(name): form for form, names in FORMS.items() for name in names.split()}
_FUNCTIONS = {plain(name): form for name, form in OTHER_FUNCTIONS.items()}


def field_form(name: str, known: Collection[str]) -> str:
    """Return what to write in place of a field that has no name here, for a block with the `known` ones; empty for any other."""
    needed, form = OTHER_FIELDS.get(name, ("", ""))
    return form if not needed or needed in known else ""


def block_form(name: str) -> str:
    """Return what to write in place of a block that has no name here; empty for any other."""
    word = plain(name)
    if word == "logsoftmax":
        return LOG_SOFTMAX
    if word in _FUNCTIONS:
        formula = _FUNCTIONS[word]
        quoted = f'"{formula}"' if "," in formula else formula  # in braces, a comma would end it
        return f"write it as a formula of what it reads: {{compute: {quoted}}}"
    return f"write {OTHER_BLOCKS[word]}" if word in OTHER_BLOCKS else NOT_HERE.get(word, "")


def function_form(name: str, known: Collection[str]) -> str:
    """Return what to write in place of a function that has no name here; empty for any other, and where a function that stands in
    it is not `known`.
    """
    form = _FUNCTIONS.get(plain(name), "")
    called = {word for word in IDENTIFIER.findall(form) if f"{word}(" in form}
    return f"write {form}" if form and called <= {*known} else LOG_SOFTMAX if plain(name) == "logsoftmax" else ""
