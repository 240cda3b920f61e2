"""The wordings that are compared: each is data, and the one that the judge uses is among them."""

from __future__ import annotations

from ctxeval.judges.yes_no import WORDING, Wording

ASKED: dict[str, dict[str, str]] = {
    "question": {
        "about": "Is the text about exactly what the question asks about?",
        "information": "Does the text contain information about what the question asks?",
        "part": WORDING.asked["question"],
    },
    "reference": {
        "helps": "Does the text state something that helps to arrive at the reference?",
        "says": "Does the text say what the reference says, or a part of it?",
        "about": "Is the text about exactly what the question asks and the reference says?",
        "part": WORDING.asked["reference"],
    },
    "response": {
        "helps": "Does the text state something that helps to arrive at the response?",
        "about": "Is the text about exactly what the question asks and the response says?",
        "part": WORDING.asked["response"],
    },
    "support": {
        "follows": "Does everything that the claim says follow from the chunks?",
        "supported": WORDING.asked["support"],
        "true": "Is the claim true, by what the chunks say?",
    },
}


def wordings(purpose: str) -> dict[str, Wording]:
    """Give all that are compared for one purpose, by name."""
    return {name: WORDING._replace(asked={purpose: said}) for name, said in ASKED[purpose].items()}
