import nope_missing
def test_a(): pass
