"""The public `load`: a recipe by its name, from a file or its text, or from a published folder."""

from __future__ import annotations

from pathlib import Path

from composer.language.composition.override import Overrides, read_overrides
from composer.language.source_file import form_of, open_source
from composer.own_blocks import Blocks
from composer.recipe import Recipe, text_of, zoo_names


def load(source: str | Path, overrides: Overrides = None, blocks: Blocks | Path = ()) -> Recipe:
    """Return a recipe, loaded by its name in the zoo, from a file, or from its text.

    A recipe with errors can be loaded too: `Recipe.check` returns them, and methods that need a correct recipe raise them.

    Args:
        source: The name of a recipe in the zoo (`"gpt2"`), the path to a YAML file, the text of a recipe, or the path to a
            published model: a folder with a `config.json` and weights, which `Recipe.pretrained` loads.
        overrides: Values by path, `{"n_layers": 6, "layers.attn.body.mask": "full"}`, or strings `PATH=VALUE` as for `--set`;
            one string needs no list.
        blocks: Block classes of your own, or Python files that define some; one file needs no list.

    Returns:
        The recipe, not yet checked.

    Raises:
        RecipeError: There is no such recipe or file, the blocks cannot be used, or a published model is not supported.

    Examples:
        >>> import composer
        >>> recipe = composer.load("gpt2", {"n_layers": 6})
        >>> recipe.name, recipe.task
        ('gpt2', 'causal_lm')
    """
    given = tuple([blocks] if isinstance(blocks, str | Path) else blocks)
    if isinstance(source, Path) or form_of(source) == "path" or (form_of(source) == "name" and source not in zoo_names()):
        from composer.published.folder import is_published

        if is_published(Path(source)):
            return _published(Path(source), overrides, given)
    return Recipe(text_of(source), read_overrides(overrides), given)


def _published(path: Path, overrides: Overrides, blocks: Blocks) -> Recipe:
    """Return a published model as a recipe: that which an import wrote, or else one that extends that of the zoo."""
    from composer.published.folder import published_folder
    from composer.published.importing import imported

    folder = published_folder(path)
    if folder.recipe is not None:
        return Recipe(open_source(folder.recipe), read_overrides(overrides), blocks, published=folder.weights)
    return imported(path, blocks=blocks).recipe.with_overrides(overrides)
