"""Everything that a checkout makes, kept as files: what a refactoring must not change.

Before the refactoring, and again after each step of it:

    python -m tests.artifacts keep BEFORE                 # some minutes; --jobs 2 halves them
    python -m tests.artifacts keep AFTER --replay BEFORE --renames renames.json
    python -m tests.artifacts compare BEFORE AFTER --renames renames.json --accepted accepted.json

`keep` writes a folder for each recipe of the zoo, the pages, the case files, the forms of drawings and the generators of the
conformance suite: diagnostics, the typed graph, parameters, costs, generated source, drawings in all formats. `diffs` holds
pairs of models and mutated recipes, `numbers` what models start from, compute, write and learn, `docs` what commands print.
`--only zoo,docs,numbers/zoo` keeps some of these, and `compare --only` compares some. `FILE.raised` stands for what raises an
exception: the exception is what is compared.
A made tree is the same wherever and however often it is made.

Generators draw by the names of what they draw from, so that other names give other recipes. `--replay` takes the generated
and the mutated recipes from an earlier tree instead, translated by the renames; what only one of the trees has is reported.

`renames.json` says what is called otherwise; each part may be left out:

    {"tokens": {"configured": "with_config", "--batch": "--batch-size"},
     "either": {"at": "position_ids"},
     "texts":  [["^source:", "paper:", "*.yaml"], ["`first`", "`global_first`"]],
     "paths":  {"docs/blocks/chosen.txt": "docs/blocks/global_tokens.txt", "zoo/old": "zoo/new"}}

`tokens` are whole words: they, `texts` (a regular expression, what it becomes, perhaps the files in which) and `paths` (files
or folders) translate BEFORE, all tokens at once, then the texts one after the other. `either` is for words that also mean
something else, such as `at`: these are translated on both sides, so that either of them counts as the other. Words of `tokens`
are translated in the names of files too, where AFTER has a file of that name.

`compare` looks at each file as what it is: Python as a syntax tree without docstrings, SVG as canonical XML, pages with their
pictures unpacked, PNG as pixels, JSON as data, all else line by line. What it finds, from good to bad:

    equal       the same, once renamed
    comments    Python in which only comments or docstrings differ: told, and no failure
    layout      the same words, elsewhere: other columns and line breaks, other coordinates in a picture, another order of
                classes, since a longer name moves what follows; fails unless `--layout` is given
    differs     anything else, and a file that only one tree has

`accepted.json` maps globs over `FILE` or `FILE#PART` (parts are those of pages) to the reason why they may differ; one that
fits nothing is reported, so that the list stays short. The exit code is 1 where something differs that is not in it.

`recipe.yaml` in a tree is the text that was kept: a difference there explains all others of its folder.
"""
