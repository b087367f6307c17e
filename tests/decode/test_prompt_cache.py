"""Prompt caches: sessions that go on from a file, and prompts of which only what is new is read."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import composer
from composer.decode import (
    GREEDY,
    DecodeError,
    PromptCache,
    PromptCacheError,
    Request,
    Sampling,
    Slide,
    cached,
    compiled,
    generate,
    session,
    stream,
    uncached,
)
from composer.decode.prompt_caches import file as prompt_cache_file
from composer.language.tasks import TASKS
from tests.conformance.cases import language_models
from tests.conformance.inputs import DRAWS, draw
from tests.conformance.test_texts import prefix, stretch
from tests.decode.test_batches import written
from tests.decode.test_cached import TRANSLATOR
from tests.decode.test_max_length import EVERY_KIND
from tests.decode.test_several import tokens
from tests.zoo import NAMED, REST, UNNAMED

TIME = DRAWS[1]["time"]
SOME = ("gemma3", "captioner")
"""Recipes of the zoo that are saved and gone on from in `make test`."""
WRITERS = [*SOME, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in (*NAMED, *UNNAMED, *REST) if name not in SOME)]
GPT = {"n_layers": 1, "d_model": 16, "n_heads": 2, "vocab": 13, "context": 32}
GREEDILY = Request(max_new_tokens=4, sampling=GREEDY)


def gpt(seed=0, **changed):
    """A small model whose prompts can be cut anywhere."""
    return composer.load("gpt2", {**GPT, **changed}).compile(seed=seed).eval()


def recurrent():
    """One that cannot go back."""
    return composer.load("lstm_lm", {"vocab": 13, "d_model": 8, "hidden": 8, "n_layers": 1}).compile(seed=0).eval()


@torch.no_grad()
def goes_on(model, given, path, **kind):
    """Assert that two sessions that go on from a file, in turns, give bit by bit what the one that was saved gives."""
    text, start = TASKS[model.recipe.task].text, max(3, prefix(model, given))
    parts = [stretch(model, given, at, at + 1) for at in range(start, TIME)]
    with session(model, **kind) as opened:
        model(**stretch(model, given, 0, start))
        opened.save(path, given[text][:, :start])
        expected = [model(**part).logits for part in parts]
    one, other = (session(model, prompt_cache=path, **kind) for _ in range(2))
    for part, logits in zip(parts, expected, strict=True):
        with other:
            model(**{**part, text: part[text].flip(0)})
        with one:
            assert torch.equal(model(**part).logits, logits)
    assert one.length == TIME


@pytest.mark.parametrize("kind", [{"initial_length": 2}, {"max_length": TIME + 2}], ids=["growing", "fixed"])
@pytest.mark.parametrize("recipe", [EVERY_KIND, TRANSLATOR], ids=["every kind", "translator"])
def test_a_session_goes_on_from_a_file_as_if_it_had_not_been_interrupted(recipe, kind, tmp_path):
    """Windows, a ring buffer, latents, a state, a kernel, cross-attention and padding; another session does not disturb it."""
    model = composer.load(recipe).compile(seed=0).eval()
    given = draw(model.program, DRAWS[1], seed=4)
    if "tokens" in given:
        given["valid"][:] = torch.arange(TIME) >= torch.tensor([[2], [0], [1]])
    goes_on(model, given, tmp_path / "prompt.safetensors", **kind)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_every_model_that_writes_goes_on_from_a_file(name, tmp_path):
    """Whatever its blocks keep."""
    for model in language_models(f"zoo {name}"):
        given = draw(model.program, DRAWS[1], seed=4, optional=False)
        if prefix(model, given) < TIME:
            goes_on(model, given, tmp_path / "prompt.safetensors", initial_length=3)


@torch.no_grad()
def test_a_fixed_and_a_growing_session_go_on_from_each_other(tmp_path):
    """Up to rounding; if there is room."""
    model, text, path = written().double(), tokens(), tmp_path / "prompt.safetensors"
    whole = model(text).logits
    for one, other in (({}, {"max_length": 40}), ({"max_length": 40}, {"initial_length": 8})):
        with session(model, **one) as opened:
            model(text[:, :20])
            opened.save(path, text[:, :20])
        with session(model, prompt_cache=path, **other):
            torch.testing.assert_close(model(text[:, 20:]).logits, whole[:, 20:])
    with pytest.raises(PromptCacheError, match="has 20 tokens, and this session room for 19"):
        session(model, max_length=19, prompt_cache=path)


def read_tokens(model):
    """A list to which each call of a model adds how many tokens it reads."""
    read = []
    model.register_forward_pre_hook(
        lambda _, args, named: read.append(next(iter([*args, *named.values()])).shape[1]), with_kwargs=True
    )
    return read


@pytest.mark.parametrize(
    ("prompt", "found", "of_states"),
    [([1, 2, 3, 4, 5], 5, 5), ([1, 2, 3, 4, 5, 6, 7], 5, 5), ([1, 2, 3, 6, 6, 6], 3, 0), ([1, 2, 3], 2, 0), ([2, 2, 3], 0, 0)],
    ids=["the same", "longer", "another end", "shorter", "another"],
)
@pytest.mark.parametrize("build", [gpt, recurrent])
def test_only_what_is_new_of_a_prompt_is_read(build, prompt, found, of_states, tmp_path):
    """Back to where the texts part, where the model can go back; the file then holds the new prompt, if it did not hold it."""
    model, path, known = build(), tmp_path / "prompt.safetensors", [1, 2, 3, 4, 5]
    expected = generate(model, [prompt], GREEDILY, reading=cached)
    found = found if build is gpt else of_states
    generate(model, [known], GREEDILY, reading=PromptCache(path))
    before, read, cache = path.read_bytes(), read_tokens(model), PromptCache(path)
    assert generate(model, [prompt], GREEDILY, reading=cache) == expected
    assert (cache.found, cache.length) == (found, len(prompt))
    assert read == [*([len(prompt) - found] if len(prompt) > found else []), 1, 1, 1]
    assert (path.read_bytes() == before) == (known[: len(prompt)] == prompt)
    again = PromptCache(path)
    assert generate(model, [prompt], GREEDILY, reading=again) == expected
    assert again.found == (found if prompt == [1, 2, 3] else len(prompt))


def test_one_object_keeps_its_first_prompt(tmp_path):
    """For further seeds; the windows behind it are no prompts, nor is one with other sources or rows equal to it."""
    model, path = gpt(context=8), tmp_path / "prompt.safetensors"
    request = Request(max_new_tokens=12, sampling=Sampling(temperature=0.9), limit=Slide(8))
    cache = PromptCache(path)
    for seed in (1, 2):
        assert [*stream(model, [1, 2, 3], request, seed=seed, reading=cache)] == [*stream(model, [1, 2, 3], request, seed=seed)]
    assert (cache.found, session(model, prompt_cache=path).length) == (0, 3)
    other = PromptCache(path)
    two = generate(model, [[1, 2, 3], [1, 2, 3]], GREEDILY, reading=other)
    assert (other.found, two[0]) == (0, generate(model, [[1, 2, 3]], GREEDILY)[0])
    with pytest.raises(DecodeError, match="is of another model"):
        generate(gpt(), [[1]], GREEDILY, reading=other)


def test_a_source_is_read_once_and_another_anew(tmp_path):
    """The encoder does not run again, but for another source; a session refuses that, since it cannot read anew."""
    model, path = composer.load(TRANSLATOR).compile(seed=0).eval(), tmp_path / "prompt.safetensors"
    sources, ran = tokens(2, 6), []
    model.get_submodule("encoder.embed").register_forward_hook(lambda *_: ran.append(1))
    for rows, count in ((sources[:1], 1), (sources[:1], 0), (sources[1:], 1)):
        ran.clear()
        found = generate(model, [[3, 4]], GREEDILY, encoder_inputs={"source": rows}, reading=PromptCache(path))
        assert len(ran) == count
        assert found == generate(model, [[3, 4]], GREEDILY, encoder_inputs={"source": rows}, reading=cached)
    with (
        session(model, prompt_cache=path),
        pytest.raises(DecodeError, match="this `source` is another one than that of the prompt cache"),
    ):
        model(source=sources[:1], target=torch.tensor([[1]]))


def test_a_compiled_step_goes_on_from_a_prompt_cache(tmp_path):
    """And a reading without a session is refused."""
    model, path, prompt = gpt(), tmp_path / "prompt.safetensors", [[1, 2, 3]]
    expected = generate(model, prompt, GREEDILY)
    for found in (0, 3):
        cache = PromptCache(path, compiled(model, backend="eager"))
        assert generate(model, prompt, GREEDILY, reading=cache) == expected
        assert cache.found == found
    with pytest.raises(DecodeError, match="for a reading in a session: `cached` or"):
        generate(model, prompt, GREEDILY, reading=PromptCache(path, uncached))


@torch.no_grad()
def saved(model, path):
    """Write a prompt cache of three tokens."""
    with session(model) as opened:
        model(torch.tensor([[1, 2, 3]]))
        opened.save(path, torch.tensor([[1, 2, 3]]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 1}, "is of other weights than those of this model"),
        ({"n_layers": 2}, "is of another recipe than this model, or of other settings of it"),
        ("dtype", "is of weights in 'float32', and this model has them in 'bfloat16'"),
        ("version", f"was written by Composer '{composer.__version__}', and this is '99'"),
    ],
    ids=["weights", "settings", "dtype", "version"],
)
def test_a_prompt_cache_is_of_one_model(change, said, tmp_path, monkeypatch):
    """Of one recipe, its weights, their dtype, and one version of Composer, wherever the recipe lies."""
    path, own = tmp_path / "prompt.safetensors", tmp_path / "my_own.yaml"
    saved(gpt(), path)
    own.write_text(composer.load("gpt2").source.text, encoding="utf-8")
    assert session(composer.load(own, GPT).compile(seed=0), prompt_cache=path).length == 3
    if change == "version":
        monkeypatch.setattr(prompt_cache_file, "__version__", "99")
    model = gpt(**change) if isinstance(change, dict) else gpt().bfloat16() if change == "dtype" else gpt()
    with pytest.raises(PromptCacheError) as caught:
        session(model, prompt_cache=path)
    assert str(caught.value) == f"{path} {said}"
    assert caught.value.hint == "remove it, or name another file"


def test_damage_is_told_by_the_name_of_the_file(tmp_path):
    """A bit anywhere, an end that is missing, another kind of file, and nothing at all."""
    model, path = gpt(), tmp_path / "prompt.safetensors"
    saved(model, path)
    whole = path.read_bytes()
    bad = [whole[:cut] for cut in (0, 7, 100, len(whole) // 2, len(whole) - 1)]
    for at in (0, 9, *range(20, len(whole), 211), len(whole) - 1):
        bad.append(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
    for content in bad:
        path.write_bytes(content)
        with pytest.raises(PromptCacheError, match=r"prompt\.safetensors (is damaged|is no prompt cache)"):
            session(model, prompt_cache=path)
    save_file({"a": torch.zeros(2)}, path)
    with pytest.raises(PromptCacheError, match="is no prompt cache, but another file of safetensors"):
        session(model, prompt_cache=path)
    for there in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(PromptCacheError, match=f"cannot read {there}: "):
            PromptCache(there) and session(model, prompt_cache=there)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda about: about.update(format=2), "has the format 2; this version of Composer reads 1"),
        (lambda about: about.update(code="x"), "is damaged: its description has another form"),
        (lambda about: about.update(length=-3), "is damaged: its description has another form"),
        (lambda about: about.update(length=4), "has other tokens"),
        (lambda about: about.update(rows=2), "has other rows"),
        (lambda about: about["caches"].pop(), "it has the caches of other nodes"),
        (lambda about: about["tokens"].update(name="nowhere"), "it lacks 'nowhere'"),
        (lambda about: about["tokens"].update(axes=[0, 0]), "'tokens' has other axes"),
    ],
)
def test_a_file_of_another_form_is_told_though_its_checksum_is_right(change, said, tmp_path):
    """Whoever writes it."""
    model, path = gpt(), tmp_path / "prompt.safetensors"
    saved(model, path)
    with safe_open(path, framework="pt") as file:
        about, stored = json.loads(file.metadata()["prompt_cache"]), {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    change(about)
    text = json.dumps(about)
    save_file(stored, path, metadata={"prompt_cache": text, "sha256": prompt_cache_file._checksum(text, stored)})
    with pytest.raises(PromptCacheError) as caught:
        session(model, prompt_cache=path)
    assert said in str(caught.value)


def test_what_cannot_be_saved_is_told_and_no_file_is_left(tmp_path):
    """Nothing read, and other tokens than those read."""
    model, path = gpt(), tmp_path / "prompt.safetensors"
    with session(model) as opened:
        with pytest.raises(PromptCacheError, match="the session has read 0 rows of 0 tokens"):
            opened.save(path, torch.zeros(0, 0, dtype=torch.int64))
        model(torch.tensor([[1, 2, 3]]))
        with pytest.raises(PromptCacheError, match=r"has read 1 row of 3 tokens, and `tokens` are int64 \[1, 2\]"):
            opened.save(path, torch.tensor([[1, 2]]))
    assert list(tmp_path.iterdir()) == []
