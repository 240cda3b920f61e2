"""Tables, data sets of other tools and lists read to samples."""

import math
import uuid
from types import SimpleNamespace

import numpy as np
import pytest

from ctxeval import InvalidArgumentError, InvalidSampleError, References, Sample, Span
from ctxeval.record.reading import read_samples

ROWS = {
    "id": [1, 2],
    "user_input": ["q", None],
    "reference_context_ids": [["a", "b"], None],
    "reference_spans": [[{"document": "d", "start": 0, "end": 3}] * 2, None],
}
SAMPLES = [
    Sample(
        id="1",
        user_input="q",
        reference_context_ids=["a", "b"],
        reference_spans=[Span("d", 0, 3)] * 2,
    ),
    Sample(id="2"),
]


def read(source, **options):
    return list(read_samples(source, **options))


def of_pandas(columns):
    return pytest.importorskip("pandas").DataFrame(columns)


def of_polars(columns):
    return pytest.importorskip("polars").DataFrame(columns)


def of_pyarrow(columns):
    return pytest.importorskip("pyarrow").table(columns)


def pandas_by_way_of_parquet(columns):
    """Lists come back as numpy arrays, and a missing integer makes a column float."""
    pytest.importorskip("pandas")
    return of_pyarrow(columns).to_pandas()


TABLES = [of_pandas, of_polars, of_pyarrow, pandas_by_way_of_parquet]


@pytest.mark.parametrize("table", TABLES)
class TestTables:
    def test_every_cell_comes_back(self, table):
        assert read(table(ROWS)) == SAMPLES

    def test_integers_beside_a_missing_one(self, table):
        assert [sample.id for sample in read(table({"id": [7, None]}))] == ["7", None]

    def test_lists_in_json(self, table):
        columns = {"reference_contexts": ['["x", "y"]', "", None], "metadata": ['{"n": 1}'] * 3}
        assert read(table(columns)) == [
            Sample(reference_contexts=["x", "y"], metadata={"n": 1}),
            Sample(metadata={"n": 1}),
            Sample(metadata={"n": 1}),
        ]

    def test_an_empty_text_is_no_missing_one(self, table):
        assert read(table({"reference": ["", "x"]}))[0].reference == ""

    def test_grades(self, table):
        rows = {"reference_context_ids": [{"a": 2, "b": None}, {"a": 1, "b": 3}]}
        first, second = (sample.reference_context_ids for sample in read(table(rows)))
        assert first == {"a": 2}
        assert second == {"a": 1, "b": 3}

    def test_further_columns(self, table):
        columns = {"id": ["a", "b"], "topic": ["tax", None], "rubrics": [["x"], None]}
        first, second = read(table(columns), metadata_columns="topic")
        assert first.metadata == {"topic": "tax", "rubrics": ["x"]}
        assert second.metadata == {}

    def test_the_name_of_one_column_is_no_pattern(self, table):
        with pytest.raises(InvalidSampleError, match="unknown column 'top'"):
            read(table({"top": ["x"]}), metadata_columns="topic")

    def test_a_known_column_may_be_metadata(self, table):
        (sample,) = read(table({"id": ["a"], "reference": [3]}), metadata_columns=("reference",))
        assert (sample.reference, sample.metadata) == (None, {"reference": 3})

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            pytest.param(
                {"ids": ["a"]},
                "samples: unknown column 'ids' (kept if named in metadata_columns): did you mean "
                "'id'?",
                id="an unknown column",
            ),
            pytest.param(
                {"question": ["q"]}, "samples: unknown column 'question' (kept if", id="a far one"
            ),
            pytest.param(
                {"id": [1, 2], "user_input": [3, 4]},
                "samples, row 1: user_input: 3 is a int: give a string",
                id="a number",
            ),
            pytest.param(
                {"id": [1, 2], "reference_contexts": ["[]", "['a']"]},
                'samples, row 2: reference_contexts: "[\'a\']" is no list in JSON: write ["a", ',
                id="no JSON",
            ),
            pytest.param(
                {"reference_context_ids": [["a"], ["b", None]]},
                "samples, row 2: reference_context_ids[1]: None is no id",
                id="a hole in a list",
            ),
        ],
    )
    def test_bad_ones(self, table, columns, message):
        with pytest.raises(InvalidSampleError) as caught:
            read(table(columns))
        assert message in str(caught.value)

    def test_no_rows(self, table):
        assert read(table({"id": []})) == []


class TestPandas:
    @pytest.fixture
    def pandas(self):
        return pytest.importorskip("pandas")

    def test_whatever_is_missing(self, pandas):
        missing = [None, math.nan, pandas.NA, pandas.NaT, np.float32("nan")]
        frame = pandas.DataFrame({"id": range(5)}).assign(
            reference=pandas.Series(missing, dtype=object),
            retrieved_contexts=pandas.Series(missing, dtype=object),
            topic=pandas.Series(missing, dtype=object),
        )
        samples = [Sample(id=number) for number in range(5)]
        assert read(frame, metadata_columns=["topic"]) == samples
        assert read(frame.to_dict("records"), metadata_columns=["topic"]) == samples

    def test_an_index_with_a_name_is_a_column(self, pandas):
        frame = pandas.DataFrame({"id": [4], "reference": ["x"]})
        assert read(frame.set_index("id")) == [Sample(id=4, reference="x")]
        assert read(frame.set_index("id", drop=False)) == [Sample(id=4, reference="x")]
        assert read(frame.set_index([["no name"], "id"])) == [Sample(id=4, reference="x")]

    def test_arrows_lists(self, pandas):
        pyarrow = pytest.importorskip("pyarrow")
        ids = pandas.Series(
            [["a", "b"], None], dtype=pandas.ArrowDtype(pyarrow.list_(pyarrow.string()))
        )
        first, second = read(pandas.DataFrame({"retrieved_context_ids": ids}))
        assert first.retrieved_context_ids == ("a", "b")
        assert second.retrieved_context_ids is None

    def test_what_it_calls_an_index_of_a_file(self, pandas):
        with pytest.raises(InvalidSampleError, match=r"column 'Unnamed: 0' .*index=False"):
            read(pandas.DataFrame({"Unnamed: 0": [0]}))

    def test_names_that_are_numbers(self, pandas):
        frame = pandas.DataFrame({"id": ["a"], 0: ["x"]})
        assert read(frame, metadata_columns=["0"]) == [Sample(id="a", metadata={"0": "x"})]
        assert read(frame.to_dict("records"), metadata_columns=["0"]) == read(
            frame, metadata_columns=["0"]
        )

    def test_a_column_twice(self, pandas):
        frame = pandas.DataFrame([[1, 2]], columns=["id", "id"])
        with pytest.raises(InvalidSampleError, match="samples: two columns are named 'id'"):
            read(frame)

    def test_a_column_named_samples_does_not_mislead(self, pandas):
        frame = pandas.DataFrame({"id": [1], "samples": [2]})
        assert read(frame, metadata_columns=["samples"])[0].metadata == {"samples": 2}


def test_grades_in_a_map_of_arrow():
    pyarrow = pytest.importorskip("pyarrow")
    grades = pyarrow.array([[("a", 2)], None], pyarrow.map_("string", "int64"))
    first, second = read(pyarrow.table({"reference_context_ids": grades}))
    assert first.reference_context_ids == {"a": 2}
    assert second.reference_context_ids is None


class Dumped(SimpleNamespace):
    """As Ragas' samples are: models of pydantic, with all fields, most of them None."""

    def model_dump(self):
        return dict(vars(self))


RAGAS = Dumped(
    user_input="q",
    retrieved_contexts=None,
    reference_context_ids=["a", 2],
    reference="x",
    persona_name="clerk",
    query_style=None,
    reference_topics=None,
    rubrics={"score1": "bad"},
)
FROM_RAGAS = Sample(
    user_input="q",
    reference_context_ids=["a", "2"],
    reference="x",
    metadata={"persona_name": "clerk", "rubrics": {"score1": "bad"}},
)


class TestRagas:
    @pytest.mark.parametrize(
        "source", [SimpleNamespace(samples=[RAGAS]), [RAGAS]], ids=["a data set", "a list"]
    )
    def test_samples(self, source):
        assert read(source) == [FROM_RAGAS]
        assert References.from_ragas(source).lookup("q").sample == FROM_RAGAS

    def test_a_test_set(self):
        row = Dumped(eval_sample=RAGAS.model_dump() | {"reference": "y"}, synthesizer_name="hop")
        (sample,) = read(SimpleNamespace(samples=[row]))
        assert sample.reference == "y"
        assert sample.metadata == {**FROM_RAGAS.metadata, "synthesizer_name": "hop"}

    def test_several_turns_are_refused(self):
        with pytest.raises(InvalidSampleError, match=r"samples\[0\]: user_input.* is a list: give"):
            read(SimpleNamespace(samples=[Dumped(user_input=[{"content": "q"}])]))


def stand_in(**fields):
    return SimpleNamespace(**{"inputs": {}, "outputs": None, "metadata": None, "id": "i"} | fields)


def example(**fields):
    schemas = pytest.importorskip("langsmith.schemas")
    return schemas.Example(**{"id": uuid.UUID(int=7), "dataset_id": uuid.UUID(int=8)} | fields)


@pytest.mark.parametrize("made", [stand_in, example])
class TestLangSmith:
    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({"inputs": {"question": "q"}}, {"user_input": "q"}),
            ({"inputs": {"query": "q"}}, {"user_input": "q"}),
            ({"inputs": {"input": "q"}}, {"user_input": "q"}),
            ({"inputs": {"user_input": "q"}}, {"user_input": "q"}),
            ({"outputs": {"reference": "x"}}, {"reference": "x"}),
            ({"outputs": {"answer": "x"}}, {"reference": "x"}),
            ({"outputs": {"output": "x"}}, {"reference": "x"}),
            ({"outputs": {"reference_ids": ["a"]}}, {"reference_context_ids": ["a"]}),
            ({"outputs": {"reference_context_ids": {"a": 1}}}, {"reference_context_ids": {"a": 1}}),
            ({"outputs": {"reference_contexts": ["c"]}}, {"reference_contexts": ["c"]}),
            ({"inputs": {"topic": "tax"}}, {"metadata": {"topic": "tax"}}),
            ({"metadata": {"split": "base"}}, {"metadata": {"split": "base"}}),
            ({"inputs": None, "outputs": None}, {}),
        ],
    )
    def test_the_names(self, made, fields, expected):
        one = made(**fields)
        (sample,) = read(iter([one]), metadata_columns=["topic"])
        assert sample == Sample(id=one.id, **expected)
        references = References.from_langsmith(iter([one]), metadata_columns=["topic"])
        assert references.lookup(id=one.id).sample == sample

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"inputs": {"chat": []}}, r"samples\[0\]: unknown field 'chat'"),
            ({"inputs": {"question": "q", "query": "r"}}, "'query' is a second 'user_input'"),
            ({"outputs": {"answer": {"text": "x"}}}, "reference: {'text': 'x'} is a dict: give a"),
        ],
    )
    def test_bad_ones(self, made, fields, message):
        with pytest.raises(InvalidSampleError, match=message):
            read([made(**fields)])


class TestLists:
    def test_of_samples_and_dicts(self):
        given = [Sample(id=1), {"id": 2.0, "retrieved_contexts": np.array(["x"])}]
        assert read(given) == [Sample(id="1"), Sample(id="2", retrieved_contexts=["x"])]

    def test_numpy_leaves_no_trace(self):
        inside = {"a": np.array([1, 2]), "n": [np.float64("nan"), np.int64(3)]}
        (sample,) = read([{"metadata": inside, "topic": np.bool_(True)}], metadata_columns="topic")
        assert repr(sample.metadata) == "{'a': [1, 2], 'n': [None, 3], 'topic': True}"

    def test_a_grade_that_is_nan_is_none(self):
        (sample,) = read([{"reference_context_ids": {"a": math.nan, "b": 1.0}}])
        assert sample.reference_context_ids == {"b": 1}

    def test_references_are_a_list_too(self):
        assert read(References(SAMPLES)) == SAMPLES

    def test_nothing_is_read_before_it_is_asked_for(self):
        def endless():
            while True:
                yield {"id": 1}

        assert next(read_samples(endless())) == Sample(id=1)

    @pytest.mark.parametrize("item", [7, "a text", ["id"], None])
    def test_bad_items(self, item):
        with pytest.raises(InvalidSampleError, match=r"samples\[1\]: .* give a Sample or a dict"):
            read([{"id": 1}, item])

    @pytest.mark.parametrize("source", [7, None, {"id": 1}, Sample(id=1)])
    def test_no_list(self, source):
        with pytest.raises(InvalidArgumentError, match=r"samples: .* is no list: give a list of"):
            read_samples(source)
