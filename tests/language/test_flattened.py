"""The text of a recipe that extends another, or is changed by overrides."""

import composer

WITHOUT = "recipe: mine\nextends: gpt_mini\ngraph: {layers: {graph: {attn: null}}}\n"


def test_a_text_is_without_the_params_that_nothing_reads_anymore() -> None:
    """In the file they are a warning, since the base declares them; in one text they would be the author's own mistake."""
    recipe = composer.load(WITHOUT)
    assert [each.code for each in recipe.check()] == ["unused-param", "unused-input"]
    again = composer.load(recipe.text)
    assert [each.code for each in again.check()] == ["unused-input"] and "n_heads" not in again.text and "n_layers" in again.text
    assert again.diff(recipe).equal
    changed = composer.load("gpt_mini", {"layers.attn": None})
    assert [each.code for each in composer.load(changed.text).check()] == ["unused-input"]
