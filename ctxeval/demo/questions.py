"""Questions on the language reference, each with the words that mark the passages answering it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ctxeval.demo.corpus import fold

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxeval.demo.corpus import Passage


@dataclass(frozen=True, slots=True)
class Question:
    """A question that the language reference answers.

    Attributes:
        text: The question.
        topic: The topic that answers it, a key of `pydoc_data.topics`.
        anchors: Words or phrases that together occur in the answering passages of that topic and
            in no other one. Case and white space do not count; quotes differ between Python
            versions, so none is in an anchor.
        answer: A reference answer, true for every Python from 3.11 on.
        style: `beginner` when it is asked in everyday words, which the reference mostly does not
            use; `reference` when it is asked in the reference's own terms.
    """

    text: str
    topic: str
    anchors: tuple[str, ...]
    answer: str
    style: Literal["beginner", "reference"]


def answering(question: Question, passages: Iterable[Passage]) -> tuple[str, ...]:
    """Finds the passages that answer a question.

    Args:
        question: The question.
        passages: The passages to look in.

    Returns:
        The ids of the passages of the question's topic that hold all its anchors, in the order of
        `passages`; none when this Python's reference words the answer in another way.
    """
    anchors = [fold(anchor) for anchor in question.anchors]
    return tuple(
        passage.id
        for passage in passages
        if passage.topic == question.topic
        and all(anchor in fold(passage.text) for anchor in anchors)
    )


def usable(
    passages: Iterable[Passage],
) -> tuple[list[tuple[Question, tuple[str, ...]]], list[Question]]:
    """Sorts the questions by whether the passages answer them.

    Args:
        passages: All passages of the running Python's reference.

    Returns:
        The answered questions, each with the ids of its expected passages, and the questions
        without any expected passage. Both are in the order of `QUESTIONS`.
    """
    passages = list(passages)
    answered: list[tuple[Question, tuple[str, ...]]] = []
    unanswered: list[Question] = []
    for question in QUESTIONS:
        if expected := answering(question, passages):
            answered.append((question, expected))
        else:
            unanswered.append(question)
    return answered, unanswered


QUESTIONS: tuple[Question, ...] = (
    Question(
        "Why does my function remember the list from the last call when I use [] as the default?",
        "function",
        ("default parameter value is in effect modified",),
        "The default value is made once, when the def statement runs, and every call without that "
        "argument shares it. Use None as the default and make the list inside the function.",
        "beginner",
    ),
    Question(
        "Why does changing one row of my nested list change all the other rows too?",
        "typesseq",
        ("[[]] * 3",),
        "Multiplying a list repeats references to the same inner list and copies nothing. Build "
        "the rows one by one, for instance with a list comprehension.",
        "beginner",
    ),
    Question(
        "Why does Python say that my variable has no value when I read it in the function "
        "before setting it?",
        "execmodel",
        ("when a name is used", "bound"),
        "Because the function assigns to that name somewhere, the name is local in the whole "
        "function, so reading it before the assignment fails.",
        "beginner",
    ),
    Question(
        "How can I change a global variable from inside a function?",
        "global",
        ("impossible to assign to a global variable",),
        "Name the variable in a global statement in the function before assigning to it.",
        "beginner",
    ),
    Question(
        "What do I write where Python wants some code but I have nothing to put there yet?",
        "pass",
        ("null operation",),
        "The pass statement, which does nothing.",
        "beginner",
    ),
    Question(
        "Why is my error variable gone after the except block?",
        "try",
        ("cleared",),
        "The name given after as is deleted when the except clause ends, so that the exception and "
        "its traceback do not keep each other and the frame alive.",
        "beginner",
    ),
    Question(
        "How can I raise an error of my own and still show the first error that caused it?",
        "raise",
        ("used for exception chaining",),
        "Write raise NewError(...) from original: the original is stored as the cause, and both "
        "are shown in the traceback.",
        "beginner",
    ),
    Question(
        "How do I print a number with a comma after every three digits?",
        "formatstrings",
        ("comma",),
        "Put a comma in the format specification, as in '{:,}'.format(amount).",
        "beginner",
    ),
    Question(
        "How do I split a line wherever there is a semicolon?",
        "string-methods",
        ("str.split(sep",),
        "Call line.split(';'), which returns the list of the pieces between the semicolons.",
        "beginner",
    ),
    Question(
        "How do I compare two words when one of them may be in capitals?",
        "string-methods",
        ("caseless matching",),
        "Compare what casefold() returns for both; it removes more case differences than lower().",
        "beginner",
    ),
    Question(
        "How do I get a value from a dict without an error when the key is not there?",
        "typesmapping",
        ("get(key", "never raises"),
        "Use d.get(key, default): for a missing key it returns the default, or None without one, "
        "instead of raising KeyError.",
        "beginner",
    ),
    Question(
        "Why is adding small pieces to a long string in a loop so slow?",
        "typesseq",
        ("quadratic",),
        "Each + on strings makes a new string and copies what there was, so the total cost grows "
        "with the square of the length. Collect the pieces in a list and join them at the end.",
        "beginner",
    ),
    Question(
        "How do I choose what is shown when somebody prints one of my objects?",
        "customization",
        ("nicely printable",),
        "Define __str__ in the class and return the text from it; without it, __repr__ is used.",
        "beginner",
    ),
    Question(
        "What must my own class have so that I can loop over it with for?",
        "sequence-types",
        ("object.__iter__",),
        "An __iter__ method that returns a new iterator over its items.",
        "beginner",
    ),
    Question(
        "How do I put the first item of a list in one variable and all the rest in another?",
        "assignment",
        ("remaining items in the iterable",),
        "Put a star before the second name: first, *rest = values.",
        "beginner",
    ),
    Question(
        "When stopping at each line to find a bug, how do I avoid going into every function that "
        "gets called?",
        "debugger",
        ("stops inside a called function",),
        "Use pdb's next command, which runs called functions at full speed and stops at the next "
        "line of the current function; step would go into them.",
        "beginner",
    ),
    Question(
        "Do I have to close my files myself or will Python do it sooner or later?",
        "objects",
        ("not guaranteed to happen", "close()"),
        "Close them yourself, best with a with statement: they are closed when the object is "
        "garbage-collected, but that may come late or never.",
        "beginner",
    ),
    Question(
        "Can I test that a number lies between two others in one go, as in maths?",
        "comparisons",
        ("chained arbitrarily",),
        "Yes, low < x < high means low < x and x < high, with x evaluated only once.",
        "beginner",
    ),
    Question(
        "Why does an or between two strings give me one of them back and not True?",
        "booleans",
        ("last evaluated argument",),
        "The operators and and or return the operand evaluated last, not a bool; a non-empty first "
        "word is true, so or returns it.",
        "beginner",
    ),
    Question(
        "Why does adding to a list in one object change it in all other objects of that class?",
        "class",
        ("shared by instances", "mutable values"),
        "A list assigned in the class body is one class attribute that all instances share. Make a "
        "list for each instance in __init__ through self.",
        "beginner",
    ),
    Question(
        "How do I write a Windows path without doubling every backslash?",
        "strings",
        ("treat backslashes as literal characters",),
        "Use a raw string literal, with r before the opening quote, in which backslashes stay as "
        "they are.",
        "beginner",
    ),
    Question(
        "What do the dots before a module name in an import mean?",
        "import",
        ("leading dot",),
        "They make the import relative: one dot is the package of the importing module, and each "
        "further dot goes one package up.",
        "beginner",
    ),
    Question(
        "How do I pass all the items of a list to a function as separate arguments?",
        "calls",
        ("additional positional arguments", "iterable"),
        "Put a star before the list in the call, as in f(*values).",
        "beginner",
    ),
    Question(
        "In which order are multiple decorators of a function applied?",
        "function",
        ("nested fashion",),
        "They are nested: the decorator nearest to the def is applied first, the topmost one last.",
        "reference",
    ),
    Question(
        "Do names that end in two underscores undergo private name mangling in a class?",
        "atom-identifiers",
        ("considered a *private name*",),
        "No, only names that begin with two or more underscores and do not end in two or more.",
        "reference",
    ),
    Question(
        "Are instances hashable if their class defines __eq__ only?",
        "customization",
        ("implicitly set to",),
        "No, __hash__ is then set to None. The class must define or take over a __hash__ itself.",
        "reference",
    ),
    Question(
        "When does a data descriptor take precedence over the dictionary of the instance?",
        "attribute-access",
        ("always override a redefinition",),
        "Always, if it defines __get__ and __set__; only a non-data descriptor can be overridden "
        "by an entry in the instance dictionary.",
        "reference",
    ),
    Question(
        "What effect does declaring __slots__ have on the __dict__ of instances?",
        "attribute-access",
        ("prevents the automatic creation",),
        "The instances get no __dict__ (and no __weakref__), unless it is among the slots or a "
        "base class provides it.",
        "reference",
    ),
    Question(
        "Is an __exit__ method expected to reraise the exception it receives?",
        "context-managers",
        ("should not reraise",),
        "No. It returns a false value to let the exception propagate and a true one to suppress "
        "it; raising it again is left to the caller.",
        "reference",
    ),
    Question(
        "What is the meaning of a with statement that has several context managers?",
        "with",
        ("more than one item", "nested"),
        "It works as if with statements were nested, the first item being the outermost.",
        "reference",
    ),
    Question(
        "When does the reflected method of the right operand take priority over the method of "
        "the left one?",
        "numeric-types",
        ("subclass of the left operand",),
        "When the right operand's type is a subclass of the left operand's type and provides its "
        "own implementation of the reflected method.",
        "reference",
    ),
    Question(
        "What is the order of evaluation in an augmented assignment such as a[i] += f(x)?",
        "assignment",
        ("looks-up",),
        "The target is looked up first, then the right-hand side is evaluated, and the result "
        "is written back at the end.",
        "reference",
    ),
    Question(
        "Which arithmetic operation is a right shift by n bits equivalent to?",
        "shifting",
        ("defined as floor division by",),
        "Floor division by two to the power of n.",
        "reference",
    ),
    Question(
        "Which operators of equal precedence are grouped from right to left?",
        "operator-summary",
        ("group from right to left",),
        "Exponentiation and conditional expressions.",
        "reference",
    ),
    Question(
        "What do the conversion flags of a replacement field do?",
        "formatstrings",
        ("three conversion flags",),
        "!s, !r and !a convert the value with str(), repr() or ascii() before it is formatted.",
        "reference",
    ),
    Question(
        "How much memory does a range object need compared with a list?",
        "typesseq",
        ("same (small) amount of memory",),
        "Little, and always the same: it stores only start, stop and step and calculates the items "
        "when they are needed, whereas a list stores them all.",
        "reference",
    ),
    Question(
        "Which dictionary views support set operations?",
        "typesmapping",
        ("keys views are set-like",),
        "Keys views are set-like, and so are items views, fully so when the values are hashable; "
        "they support the operations of collections.abc.Set, such as &, | and ^. Values views "
        "are not.",
        "reference",
    ),
    Question(
        "May a coroutine function contain a yield from expression?",
        "async",
        ("expression inside the body of a coroutine function",),
        "No, that is a SyntaxError.",
        "reference",
    ),
    Question(
        "Is it allowed to combine except and except* clauses in the same statement?",
        "try",
        ("not possible to mix",),
        "No, a try statement has either except or except* clauses.",
        "reference",
    ),
    Question(
        "How is a condition attached to a breakpoint?",
        "debugger",
        ("breakpoint is honored",),
        "Give the expression as second argument of pdb's break command, or set it later with the "
        "condition command.",
        "reference",
    ),
    Question(
        "What kind of object does a call to a generator function return?",
        "types",
        ("called a *generator function*",),
        "A generator: an iterator that runs the body up to the next yield each time it is asked "
        "for a value.",
        "reference",
    ),
    Question(
        "What distinguishes soft keywords from other keywords?",
        "identifiers",
        ("only reserved under specific contexts",),
        "They are reserved only in certain contexts, as match, case and _ in pattern matching, and "
        "are ordinary names elsewhere.",
        "reference",
    ),
    Question(
        "Is float('NaN') equal to itself?",
        "comparisons",
        ("not equal to themselves",),
        "No. NaN compares unequal to everything, itself included.",
        "reference",
    ),
    Question(
        "How do eval() and exec() resolve free variables?",
        "execmodel",
        ("full environment for resolving names",),
        "They look names up in the caller's local and global namespaces, or in those passed in, "
        "but not in enclosing function scopes: a free variable is looked up as a global.",
        "reference",
    ),
    Question(
        "Which names does a wild card import bind when __all__ is absent?",
        "import",
        ("public names",),
        "All names in the module's namespace that do not begin with an underscore.",
        "reference",
    ),
    Question(
        "May a lambda expression contain statements?",
        "lambda",
        ("cannot contain statements",),
        "No, the body is a single expression, and neither parameters nor result can be annotated.",
        "reference",
    ),
)
