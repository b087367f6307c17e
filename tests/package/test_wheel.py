"""The wheel, installed: what it holds, and how it lives beside packages of the same names."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Environment:
    """A virtual environment that holds the wheel."""

    python: Path
    scripts: Path
    packages: Path

    def run(self, *command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run `arco …` or `python …` in a folder, with more environment variables."""
        program = self.python if command[0] == "python" else self.scripts / command[0]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return subprocess.run(
            [str(program), *command[1:]], cwd=folder, env=inherited | variables, capture_output=True, encoding="utf-8", timeout=60
        )


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def make_environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Environment]:
    """Makes fresh environments with the wheel in them; our dependencies are borrowed from the one that runs the tests."""

    def make() -> Environment:
        folder = tmp_path_factory.mktemp("environment")
        builder = venv.EnvBuilder(symlinks=os.name != "nt")
        paths = builder.ensure_directories(folder)
        builder.create(folder)
        python = Path(paths.env_exe)
        install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
        subprocess.run(install, check=True, capture_output=True)
        where = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
        packages = Path(subprocess.run(where, check=True, capture_output=True, text=True).stdout.strip())
        # After the environment's own packages; a .pth in a borrowed folder, such as that of an editable install, is not followed.
        (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
        return Environment(python, Path(paths.bin_path), packages)

    return make


@pytest.fixture(scope="session")
def environment(make_environment: Callable[[], Environment]) -> Environment:
    """One environment for all tests that leave it as it is."""
    return make_environment()


def install_neighbor(packages: Path) -> None:
    """Install a distribution that owns `composer` too, as pip does: the file of the same name is overwritten."""
    (packages / "composer" / "__init__.py").write_text('"""Makes music."""\n', encoding="utf-8")
    record = packages / "musician-1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: musician\nVersion: 1.0\n", encoding="utf-8")
    (record / "RECORD").write_text("composer/__init__.py,,\nmusician-1.0.dist-info/METADATA,,\n", encoding="utf-8")


def assert_one_line(run: subprocess.CompletedProcess[str], *, naming: str) -> None:
    """Assert that wrong usage is reported in one line on stderr that names what is in the way."""
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("arco: ")
    assert run.stderr.count("\n") == 1
    assert naming in run.stderr


def test_only_two_packages_become_importable(wheel: Path) -> None:
    """At the top of the wheel stand `blocks`, `composer` and the wheel's own records; tests and docs stay out."""
    tops = {Path(name).parts[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"blocks", "composer"}


def test_every_file_of_both_packages_and_every_recipe_is_in_the_wheel(wheel: Path) -> None:
    """Byte for byte what the checkout holds, the recipes inside `composer`."""
    homes = {"blocks": "blocks", "composer": "composer", "recipes": "composer/recipes"}
    held = zipfile.ZipFile(wheel)
    files = [
        file
        for source in homes
        for file in (ROOT / source).rglob("*")
        if file.suffix in {".py", ".typed", ".yaml", ".txt", ".md", ".ttf", ".html", ".css", ".js"}
    ]
    for file in files:
        source, *rest = file.relative_to(ROOT).parts
        assert held.read("/".join([homes[source], *rest])) == file.read_bytes()
    assert {file.name for file in files} >= {"__main__.py", "part.py", "py.typed", "gpt2.yaml", "shakespeare.txt", "page.js"}


def test_installed_package_is_the_one_that_answers(environment: Environment, tmp_path: Path) -> None:
    """Code, recipes and plays come from the new environment, not from the checkout."""
    code = "import composer, composer.package_data as z; print(composer.__file__, z.zoo() / 'gpt2.yaml', z.plays(), sep='\\n')"
    files = [Path(line) for line in environment.run("python", "-c", code, folder=tmp_path).stdout.splitlines()]
    assert len(files) == 3
    assert all(file.is_file() and file.is_relative_to(environment.packages) for file in files)


def test_installed_command_lists_the_zoo(environment: Environment, tmp_path: Path) -> None:
    """In an empty folder, every recipe is named."""
    run = environment.run("arco", "list", folder=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert all(recipe.stem in run.stdout for recipe in (ROOT / "recipes").glob("*.yaml"))


def test_installed_command_checks_a_recipe(environment: Environment, tmp_path: Path) -> None:
    """A recipe of the zoo is found by its name, and is right."""
    run = environment.run("arco", "check", "gpt2", folder=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("command", [["arco"], ["python", "-m", "composer"]], ids=" ".join)
@pytest.mark.parametrize("file", ["blocks.py", "blocks/__init__.py", "yaml.py"])
def test_modules_in_the_working_folder_do_no_harm(
    command: list[str], file: str, environment: Environment, tmp_path: Path
) -> None:
    """A module of the user's with a name that we import is left alone."""
    module = tmp_path / file
    module.parent.mkdir(exist_ok=True)
    module.write_text("raise SystemExit('the wrong module was imported')\n", encoding="utf-8")
    run = environment.run(*command, "check", "gpt2", folder=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("command", [["arco"], ["python", "-m", "composer"]], ids=" ".join)
def test_blocks_ahead_on_the_path_is_named(command: list[str], environment: Environment, tmp_path: Path) -> None:
    """Where the user put the folder of a `blocks.py` on the path himself, the file is named."""
    (tmp_path / "blocks.py").touch()
    run = environment.run(*command, "list", folder=tmp_path, PYTHONPATH=str(tmp_path))
    assert_one_line(run, naming=str(tmp_path.resolve() / "blocks.py"))


def test_other_owner_of_composer_is_named(make_environment: Callable[[], Environment], tmp_path: Path) -> None:
    """A distribution that overwrote our `composer` is named; once it is removed, the missing file is."""
    environment = make_environment()
    install_neighbor(environment.packages)
    assert_one_line(environment.run("arco", "list", folder=tmp_path), naming="musician has overwritten")
    (environment.packages / "composer" / "__init__.py").unlink()
    assert_one_line(environment.run("arco", "list", folder=tmp_path), naming="__init__.py is missing")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGPIPE")
def test_reader_that_leaves_early_is_no_error(environment: Environment, tmp_path: Path) -> None:
    """`arco list | head -0` writes nothing to stderr."""
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run([environment.scripts / "arco", "list"], cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, timeout=60)
    os.close(writer)
    assert (run.returncode, run.stderr) == (141, b"")
