"""What a block is: its fields as the language sees them, and the library that finds it by name."""

from __future__ import annotations

import re
from typing import Literal

import pytest

from blocks.core import Activation, Block, Part, fields, is_node, ports, standard
from blocks.core.fields import Boolean, Integer, NonNegativeInt, OneOf, PositiveInt, Probability, Real, SlotOf, derived
from blocks.core.library import Library, NameClash


class Example(Block, kind="example_of_all"):
    """A block with a field of each form."""

    inputs = {"x": "float[..., dim]", "more*": "float[..., dim]", "bias?": "float[dim]"}
    outputs = {"y": "float[..., dim]"}
    width: PositiveInt
    """Of something."""
    depth: NonNegativeInt = 0
    rate: Probability = 0.1
    deep: bool = False
    how: Literal["sum", "mean"] = "sum"
    curve: Activation | None = None
    hidden: PositiveInt = derived("4 * dim")


class Other(Activation, kind="example_of_all"):
    """A part of the same name."""


def test_fields_have_the_forms_and_bounds_of_their_annotations() -> None:
    """In the order of the class."""
    found = fields(Example)
    assert [type(field.form) for field in found.values()] == [Integer, Integer, Real, Boolean, OneOf, SlotOf, Integer]
    assert (found["width"].form, found["depth"].form) == (Integer(1), Integer(0))
    assert found["rate"].form == Real(minimum=0, below=1)
    assert found["how"].form == OneOf(("sum", "mean"))


def test_field_is_required_nullable_or_computed_as_it_is_declared() -> None:
    """Only what has no default must be written."""
    found = fields(Example)
    assert [name for name, field in found.items() if field.required] == ["width"]
    assert [name for name, field in found.items() if field.nullable] == ["curve"]
    assert {name: field.derived for name, field in found.items() if field.derived} == {"hidden": "4 * dim"}


def test_ports_are_marked_as_optional_or_several() -> None:
    """By the end of their types."""
    assert ports(Example) == {"x": "", "more": "*", "bias": "?"}


def test_library_is_not_changed_by_what_is_added() -> None:
    """It is a value; a family's parts are found by their base class."""
    empty = Library({})
    one = empty.with_parts([Example])
    assert "example_of_all" in one and "example_of_all" not in empty
    assert one.of(Block) == {"example_of_all": Example} and one.of(Activation) == {}
    assert one.with_parts([Example]).of(Block) == one.of(Block)


def test_two_parts_of_one_name_clash_unless_one_shadows_the_other() -> None:
    """Both files are named."""
    with pytest.raises(NameClash, match=r"test_core\.py"):
        Library({}).with_parts([Example, Other])
    assert Library({}).with_parts([Example]).shadowed_by([Other])["example_of_all"] is Other


def test_standard_library_holds_each_part_under_its_own_kind() -> None:
    """In the order of the alphabet, nodes among them and parts that fill slots alone."""
    library = standard()
    assert list(library) == sorted(library)
    assert all(library[name].kind == name for name in library)
    assert is_node(library["linear"]) and not is_node(library["causal"])


LOOKING_BACK = [kind for kind in standard() if standard()[kind].causal_forms]


@pytest.mark.parametrize("kind", LOOKING_BACK)
def test_what_looks_back_in_place_of_a_block_exists(kind: str) -> None:
    """A block with such forms mixes an axis, and each form names blocks, their fields, or fields of its own."""
    part, library = standard()[kind], standard()
    assert any("mixed_axes" in vars(each) for each in part.__mro__ if each is not Part)
    for form in part.causal_forms:
        words = re.findall(r"`(\w+)(?:: (\w+))?`", form)
        assert words
        named = [library[name] for name, _ in words if name in library]
        fields_there = {name: field for one in [*named, part] for name, field in fields(one).items()}
        for name, value in words:
            assert name in (fields_there if value else {*library, *fields_there})
            assert not value or value in ("true", "false") or value in library
