"""Words for messages."""


def a_type(value: object) -> str:
    """Return the type of a value with its article: "a list", "an int"; "None" for None."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeio' or name == 'ndarray' else 'a'} {name}"
