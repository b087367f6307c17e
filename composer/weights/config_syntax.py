"""Parsing of `config:` of a model type, which maps the keys of a published `config.json`."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from composer.diagnostics import Span
from composer.language.expressions.ast import Binary, Expression, If, Number, PathStep, RefPath, Slice, Unary
from composer.language.expressions.errors import ExpressionError
from composer.language.expressions.evaluator import check_call
from composer.language.expressions.functions import FUNCTIONS
from composer.language.expressions.parser import names, parse_expression, paths
from composer.language.recipe.keys import VALUE_WORDS, keys_of
from composer.language.yaml.nodes import YamlEntry, YamlList, YamlMapping, YamlNode, YamlScalar
from composer.weights.rule_syntax import Forms

ABOUT_THE_FILE = (
    "model_type", "architectures", "transformers_version", "dtype", "torch_dtype", "_name_or_path", "_commit_hash",
    "_attn_implementation", "_attn_implementation_autoset", "attn_implementation", "torchscript", "use_bfloat16",
    "use_cache", "return_dict", "output_attentions", "output_hidden_states", "output_past", "tf_legacy_loss",
    "gradient_checkpointing", "chunk_size_feed_forward", "is_encoder_decoder", "id2label", "label2id", "problem_type",
    "finetuning_task", "tokenizer_class", "prefix", "task_specific_params", "bos_token_id", "decoder_start_token_id",
    "eos_token_id", "pad_token_id", "sep_token_id", "max_length", "min_length", "max_new_tokens", "do_sample",
    "early_stopping", "num_beams", "num_beam_groups", "diversity_penalty", "temperature", "top_k", "top_p", "typical_p",
    "repetition_penalty", "length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids",
    "num_return_sequences", "output_scores", "return_dict_in_generate", "forced_bos_token_id", "forced_eos_token_id",
    "remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens",
    "forced_decoder_ids",
)  # fmt: skip
"""Keys of any `config.json` that do not affect what the model computes: about saving, running and generation."""
OLD = (
    "eos_token_ids", "num_labels", "xla_device", "unk_token_id", "mask_token_id", "cls_token_id", "is_composition",
    "renormalize_logits", "low_memory", "penalty_alpha", "guidance_scale", "epsilon_cutoff", "eta_cutoff", "pooler_fc_size",
    "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type",
)  # fmt: skip
"""Keys that only older files have, and that do not affect it either; a recipe may map them all the same."""
OLD_CONSTANTS = {
    "is_decoder": "false", "add_cross_attention": "false", "tie_encoder_decoder": "false", "directionality": "bidi",
    "pruned_heads": "", "cross_attention_hidden_size": "",
}  # fmt: skip
"""Keys that only older files have, each with the value under which it does not affect it; null and empty ones never do."""
REFUSED = {
    "quantization_config": "its weights are quantized, and only plain numbers are read",
    "auto_map": "it is computed by code of its own, which is not run",
}
"""Keys that no recipe maps, with the reason."""


NULL = "null"
"""Among published values, that of a key that is there and says nothing."""
CLASSES = "architectures"
"""The key that names the class of transformers, in a list of one."""
ARITHMETIC = re.compile(r"[\s(]")
"""What is in no key, but in what is computed from keys."""
OPERATORS = re.compile(r"[+*%=<>()]|[-/]\s|\s[-/]|[-/]$|\b(?:if|else)\b")
"""What is in an expression, and in a published word only in quotes; `full-attention` and `p2c|c2p` are words."""


@dataclass(frozen=True)
class Setting:
    """A value of the recipe that is set from a key."""

    path: YamlScalar
    """The path of the value, as for `--set`."""
    keys: tuple[str, ...]
    """The keys of the value, which must agree if there are several; `rope_scaling.factor` is nested in `rope_scaling`."""
    counted: bool
    """Whether the value is the number of entries of the key."""
    values: tuple[tuple[str, YamlScalar], ...]
    """Published values with ours; if null is the only one, others are used as they are. Of a list, those of its items."""
    default: YamlScalar | YamlList | None
    """The value if the key is missing or null."""
    optional: bool
    """Whether the recipe's own value is kept then."""
    formula: Expression | None = None
    """What is computed from the keys; a nested key is a single name in it."""
    times: str | None = None
    """The key with the number of items of the list that a single value stands for."""

    @property
    def of_null(self) -> YamlScalar | None:
        """The value if a key is there and null, where that is another than if it is missing."""
        return next((ours for theirs, ours in self.values if theirs == NULL), None)

    @cached_property
    def steps(self) -> tuple[YamlScalar, ...]:
        """The names of the path, each where it is written."""
        steps, start = [], 0
        for name in self.path.text.split("."):
            steps.append(YamlScalar(name.strip(), self.path.part(start, start + len(name))))
            start += len(name) + 1
        return tuple(steps)

    @property
    def by_word(self) -> dict[str, str]:
        """Our value for each published one; empty where these are used as they are."""
        return {theirs: ours.text for theirs, ours in self.values if theirs != NULL}


@dataclass(frozen=True)
class Constant:
    """The values that a key must have."""

    key: str
    span: Span
    words: tuple[YamlScalar | YamlList, ...]
    """The allowed values: words, numbers, expressions over the recipe's params, and lists of these."""
    count: YamlScalar | None
    """For a list, the number of items; the only expression in `words` then gives each item and may use its index `layer`."""

    @property
    def scalars(self) -> Iterator[YamlScalar]:
        """The allowed values, of lists each item."""
        for word in self.words:
            yield from (word,) if isinstance(word, YamlScalar) else scalars(word)

    def reads(self, params: Collection[str]) -> bool:
        """Return whether the values are computed from one of some params."""
        for word in (*self.scalars, *([] if self.count is None else [self.count])):
            try:
                if not names(parse_expression(word)).isdisjoint(params):
                    return True
            except ExpressionError:  # a word that is no expression
                continue
        return False


@dataclass(frozen=True)
class Config:
    """The mapping of the keys of a `config.json`."""

    settings: tuple[Setting, ...]
    constants: tuple[Constant, ...]
    ignore: tuple[YamlScalar, ...]
    architecture: str | None = None
    """The class of transformers that is the model with its head."""

    @property
    def mapped(self) -> tuple[str, ...]:
        """The keys of params and constants."""
        counts = (each.times for each in self.settings if each.times is not None)
        return (*(one for each in self.settings for one in each.keys), *counts, *(one.key for one in self.constants))

    def speaks_of(self, key: str) -> bool:
        """Return whether a key is mapped or ignored, itself or through a key around it."""
        inside = [one for each in self.settings if each.counted for one in each.keys]
        ignored = [one.text for one in self.ignore]
        known = (*ignored, *ABOUT_THE_FILE, *OLD, *OLD_CONSTANTS, *inside)
        return key in self.mapped or any(key == one or key.startswith(f"{one}.") for one in known)

    def leaves_open(self, key: str) -> bool:
        """Return whether neither the key nor one within it is mapped or ignored."""
        return not self.speaks_within(key) and key not in self.mapped and key not in [one.text for one in self.ignore]

    def speaks_within(self, key: str) -> bool:
        """Return whether a nested key of this key is mapped, so that the whole may be null."""
        return any(one.startswith(f"{key}.") for one in self.mapped)


class ConfigReader(Forms):
    """Parses `config:` of a model type."""

    def config(self, node: YamlNode | None) -> Config:
        """Return the mapping of a node."""
        if not isinstance(node, YamlMapping):
            if node is not None:
                self.error("checkpoints-form", node.span, "`config` must be a mapping with params, constants and ignore")
            return Config((), (), ())
        self.keys(node, keys_of("config"), "config")
        params = self.entries(node.get("params"), "params are paths of the recipe, each with a key of config.json")
        constants = self.entries(node.get("constants"), "constants are keys of config.json, each with its allowed values")
        ignored = self.items(node.get("ignore"), "`ignore` must be a list of keys", "[initializer_range]")
        architecture = node.get("architecture")
        return Config(
            tuple(self._setting(entry) for entry in params),
            tuple(self._constant(entry) for entry in constants),
            tuple(item for item in ignored if self.is_scalar(item, "a key is")),
            None if architecture is None else self.text(architecture, "an architecture is"),
        )

    def _setting(self, entry: YamlEntry) -> Setting:
        path, value = entry.key, entry.value
        if not isinstance(value, YamlMapping):
            keys, formula = self._source(value)
            return Setting(path, keys, False, (), None, False, formula)
        self.keys(value, keys_of("config param"), "param of a config")
        source, count = value.get("from"), value.get("count")
        key = count if source is None else source
        if key is None or (source is not None and count is not None):
            self.error("checkpoints-form", value.span, "a param is read from one key, or is the length of its list",
                       hint="{from: KEY, …} or {count: KEY}")  # fmt: skip
        default = value.get("default")
        words = self.entries(value.get("values"), "`values` maps published values to ours")
        keys, formula = ((), None) if key is None else self._source(key)
        if formula is not None and (value.get("values") is not None or count is not None):
            self.error("checkpoints-form", formula.span, "what is computed is a number, which has no `values` and no `count`")
        times = value.get("times")
        return Setting(
            path,
            keys,
            count is not None,
            tuple((one.key.text, one.value) for one in words if self.is_scalar(one.value, "a value is")),
            self._default(default),
            self.boolean(value.get("optional"), "optional"),
            formula,
            None if times is None else self.text(times, "a key is"),
        )

    def _default(self, node: YamlNode | None) -> YamlScalar | YamlList | None:
        if isinstance(node, YamlList):
            return node if all(self.is_scalar(item, "an item is") for item in node.items) else None
        return node if isinstance(node, YamlScalar) or (node is not None and self.is_scalar(node, "a value is")) else None

    def _source(self, node: YamlNode) -> tuple[tuple[str, ...], Expression | None]:
        """Return the keys of a value, and what is computed from them where that is written."""
        if not isinstance(node, YamlScalar) or not ARITHMETIC.search(node.text):
            return self._names(node), None
        try:
            written = parse_expression(node)
            _check_calls(written)
            formula = _with_whole_keys(written)
        except ExpressionError as error:
            self.diagnostics.append(error.diagnostic)
            return (), None
        return tuple(sorted(names(formula) - VALUE_WORDS)), formula

    def _constant(self, entry: YamlEntry) -> Constant:
        value = entry.value
        if not isinstance(value, YamlMapping):
            return Constant(entry.key.text, entry.key.span, self._words(value), None)
        self.keys(value, keys_of("config constant"), "constant of a config")
        each, count = value.get("each"), value.get("count")
        if not isinstance(each, YamlScalar) or not isinstance(count, YamlScalar):
            self.error("checkpoints-form", value.span, "a list has `count` items, each with the value of `each`",
                       hint="{each: full if layer == 0 else sliding, count: n_layers}")  # fmt: skip
            return Constant(entry.key.text, entry.key.span, (), None)
        self._parses(each)
        return Constant(entry.key.text, entry.key.span, (each,), count)

    def _names(self, node: YamlNode) -> tuple[str, ...]:
        return tuple(self.text(item, "a key is") for item in (node.items if isinstance(node, YamlList) else (node,)))

    def _words(self, node: YamlNode) -> tuple[YamlScalar | YamlList, ...]:
        items = node.items if isinstance(node, YamlList) else (node,)
        if not items:
            self.error("checkpoints-form", node.span, "a constant needs its allowed values")
        for item in items:
            for word in item.items if isinstance(item, YamlList) else (item,):
                if not isinstance(word, YamlScalar):
                    self.error("checkpoints-form", word.span, "the value of a constant is one word, or a list of words",
                               hint="KEY: [[0.0, Infinity]] allows one list, of two numbers")  # fmt: skip
                else:
                    self._parses(word)
        return tuple(item for item in items if isinstance(item, YamlScalar | YamlList))

    def _parses(self, word: YamlScalar) -> None:
        """Report what is written as an expression and is none; in quotes, a word may look like one."""
        if word.plain and OPERATORS.search(word.text):
            try:
                parse_expression(word)
            except ExpressionError as error:
                found = error.diagnostic
                self.diagnostics.append(replace(found, hint=f"{found.hint}; in quotes, a word is meant".removeprefix("; ")))


def scalars(node: YamlList) -> Iterator[YamlScalar]:
    """Yield the scalars in a list."""
    return (item for item in node.items if isinstance(item, YamlScalar))


def computes(expression: Expression, scope: Container[str]) -> bool:
    """Return whether an expression over the names in `scope` gives a number, and is not a word such as `full-attention`."""
    item = isinstance(expression, RefPath) and expression.steps[0].arguments is not None
    several = item or not isinstance(expression, Number | RefPath)
    return several and (_numbers(expression) or any(name in scope for name in names(expression)))


def _numbers(expression: Expression) -> bool:
    match expression:
        case Number():
            return True
        case Binary(left=left, right=right):
            return _numbers(left) or _numbers(right)
        case Unary(operand=operand):
            return _numbers(operand)
    return False


def _check_calls(expression: Expression) -> None:
    """Check the calls of functions in what is computed from keys; `KEY(0)` is an item of a list, whose place is a number.

    Raises:
        ExpressionError: There is no such function, or it takes another number of arguments.
    """
    for path in paths(expression):
        *_, last = path.steps
        if last.arguments is None or len(path.steps) > 1:
            continue
        if last.name in FUNCTIONS or len(last.arguments) != 1 or names(last.arguments[0]):
            check_call(last, path.span)


E = TypeVar("E", Expression, Expression | Slice)


def _with_whole_keys(expression: E) -> E:
    """Return an expression in which a nested key, `rope_scaling.factor`, is one name."""
    match expression:
        case RefPath(steps=steps):
            last = steps[-1]
            arguments = None if last.arguments is None else tuple(map(_with_whole_keys, last.arguments))
            return replace(expression, steps=(PathStep(expression.text, arguments, expression.span, expression.span),))
        case Unary(operand=operand):
            return replace(expression, operand=_with_whole_keys(operand))
        case Binary(left=left, right=right):
            return replace(expression, left=_with_whole_keys(left), right=_with_whole_keys(right))
        case If(condition=condition, then=then, otherwise=otherwise):
            condition, then, otherwise = map(_with_whole_keys, (condition, then, otherwise))
            return replace(expression, condition=condition, then=then, otherwise=otherwise)
    return expression
