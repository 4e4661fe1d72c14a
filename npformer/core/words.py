"""Words for messages."""


def with_article(name: str) -> str:
    """Return the name of a type with its article: "a list", "an int"."""
    return f"{'an' if name[0] in 'AEIOUaeio' or name == 'ndarray' else 'a'} {name}"


def a_type(value: object) -> str:
    """Return the type of a value, `with_article`; "None" for None."""
    return "None" if value is None else with_article(type(value).__name__)


def undefined(owner: object, call: str) -> NotImplementedError:
    """Return the error for a method that a class should have defined, called like this."""
    name = call.partition("(")[0]
    return NotImplementedError(f"{type(owner).__name__} does not define {name}; expected {call}")
