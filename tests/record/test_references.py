"""References are made from any source, and name the place of what they refuse."""

import ast
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

import ctxeval.record
from ctxeval import InvalidArgumentError, InvalidSampleError, References, Sample

EXPECTED = Sample(user_input="q", reference_context_ids=["a", "b"], metadata={"topic": "tax"})
JSON = '{"user_input": "q", "reference_context_ids": ["a", "b"], "topic": "tax"}'
FILES = {
    "jsonl": JSON + "\n",
    "json": f"[{JSON}]",
    "csv": 'user_input,reference_context_ids,topic\nq,"[""a"", ""b""]",tax\n',
}
TWO = [{"user_input": "q", "reference": "x"}, {"user_input": "q", "reference": "y"}]


@pytest.fixture(params=FILES)
def file(request, tmp_path):
    path = tmp_path / f"references.{request.param}"
    path.write_text(FILES[request.param])
    return path


def test_a_file_by_its_suffix(file):
    references = References.of(str(file), metadata_columns=["topic"])
    assert list(references) == [EXPECTED]


def test_a_file_by_its_door(file, tmp_path):
    door = getattr(References, f"from_{file.suffix[1:]}")
    other = file.rename(tmp_path / "references.txt")
    assert list(door(other, metadata_columns=["topic"])) == [EXPECTED]
    with pytest.raises(InvalidSampleError, match="'topic'"):
        door(other)


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "references.parquet"
    parquet.write_table(pyarrow.table({"user_input": ["q"], "reference": ["x"]}), path)
    assert list(References.of(path)) == list(References.from_parquet(path)) == [Sample(**TWO[0])]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frame = pytest.importorskip(library).DataFrame(TWO[:1])
    for made in (References(frame), References.of(frame), References.from_pandas(frame)):
        assert list(made) == [Sample(**TWO[0])]


def test_what_is_none_or_made_already():
    assert list(References.of(None)) == []
    made = References(TWO)
    assert References.of(made) is made


@pytest.mark.parametrize("make", [References, References.of, References.from_ragas])
def test_strict_everywhere(make):
    assert len(list(make(TWO))) == 2
    with pytest.raises(InvalidArgumentError, match="2 different ones for 'q'"):
        make(TWO, strict=True)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('id,reference\n1,x\n"",y\n', ", line 3: it has neither id nor user_input"),
        ("id,reference\n1,x\n1,y\n", ", line 3: id '1' stands there twice, with differences"),
    ],
)
def test_a_file_names_the_line_of_what_cannot_be_looked_up(tmp_path, lines, message):
    path = tmp_path / "references.csv"
    path.write_text(lines)
    with pytest.raises((InvalidSampleError, InvalidArgumentError)) as caught:
        References.of(path)
    assert str(caught.value).startswith(f"{path}{message}")


def test_a_table_names_its_row():
    frame = pytest.importorskip("pandas").DataFrame({"id": [1, None], "reference": ["x", "y"]})
    with pytest.raises(InvalidSampleError, match="references, row 2: it has neither id nor user"):
        References.from_pandas(frame)


def test_a_path_in_the_place_of_a_list():
    with pytest.raises(InvalidArgumentError, match=r"is no list: of a file, References\.of\(path"):
        References(Path("references.csv"))


@pytest.mark.parametrize("id", ["7", 7, 7.0])
def test_an_id_is_found_in_any_of_its_forms(id):
    assert References([{"id": 7, "reference": "x"}]).lookup(id=id).sample.reference == "x"


@pytest.mark.parametrize("id", ["", True, float("nan"), uuid.UUID(int=7), object()])
def test_what_is_no_id_is_not_found(id):
    assert "no reference has the id" in References([{"id": 7}]).lookup(id=id).reason


def test_reading_needs_no_library_of_tables(tmp_path):
    path = tmp_path / "references.csv"
    path.write_text("id\n1\n")
    script = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['pandas', 'polars', 'pyarrow']))\n"
        "import ctxeval\n"
        "print([sample.id for sample in ctxeval.References.of(sys.argv[1])])\n"
    )
    run = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("['1']\n", "")


def test_no_module_here_imports_such_a_library():
    for file in Path(ctxeval.record.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in getattr(node, "names", ())]
            names.append(getattr(node, "module", None) or "")
            assert not {"pandas", "polars", "pyarrow"} & set(names), file


def test_without_references_it_is_not_the_question_that_is_missing():
    assert References([]).lookup("q").reason == "no references were given"
    assert References(TWO).lookup("p").reason == "no reference has this question"
