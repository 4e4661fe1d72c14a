"""`python -m benchmarks tricks` finds what packs statements, and nothing that looks like it."""

import pytest

from benchmarks import tricks
from benchmarks.tricks import CONDITIONAL, KINDS, LITERAL, LOCALS, PARTIAL, ROWS, VARS

FOUND = {
    LITERAL: [
        "f(**{'a': 1, 'b': x})",
        "f(**{'a': 1} | {'b': 2})",
        "f(**dict(a=1, b=2))",
        "f(**({'a': 1} if x else {}))",
        "f(**{name: getattr(x, name) for name in ('a', 'b')})",
        "f(1, *(2, 3))",
        "f(*[2, 3])",
        "f(*'a b c'.split())",
        "f(*() if x is None else (1, x))",
        "table = {**{'a': 1, 'b': 2}, 'c': 3}",
        "def g():\n    options = {'a': 1}\n    return f(**options)",
        "def g():\n    options: dict[str, int] = {'a': 1}\n    return f(**options)",
        "def g():\n    options = dict(a=1)\n    return lambda: f(**options)",
        "def g():\n    words = '--quiet', '--seed'\n    return f(*words)",
        "def g():\n    words = ['--quiet', '--seed']\n    return [first, *words]",
        "def g():\n    where = (1, 2) if x else (1, 2, 3)\n    return f(*where)",
        "A = ('a', 'b')\nB = (*A, 'c')",
        "A = {'a': 1}\ndef g():\n    return f(**A)",
    ],
    ROWS: [
        "ROOMS = (*('a', 'b'), *('c',))",
        "rooms = [*('a', 'b'), 'c']",
        "rooms = {*['a', 'b'], 'c'}",
        "rooms = [*'a b'.split(), *'c d'.split()]",
        "f([*(a, b), *(c, d)])",
    ],
    LOCALS: ["f(locals())", "def g(a, b):\n    return dict(locals())"],
    CONDITIONAL: [
        "y = 1 if a else 2 if b else 3",
        "y = (1 if a else 2) if b else 3",
        "y = 1 if (a if b else c) else 2",
        "y = 1 if a else 2 + (3 if b else 4)",
        "y = 1 if a else x or (3 if b else 4)",
        "y = 1 if a else -(3 if b else 4)",
    ],
    PARTIAL: [
        "rate = partial(number, least=0)",
        "rate = functools.partial(number, least=0)",
        "class A:\n    b = partialmethod(c, 1)",
        "class A:\n    b: object = partial(c, 1)",
        "def g(self):\n    self.x = partial(f, 1)",
        "def g(self):\n    self.x = partial(f, 1) if a else h",
        "def g(self):\n    self.x, self.y = partial(f, 1), partial(f, 2)",
        "def g(self):\n    self.x, self.y = (partial(f, i) for i in (1, 2))",
    ],
    VARS: [
        "vars(self).update(a=1)",
        "vars(self)['a'] = 1",
        "vars(self)['a'] += 1",
        "self.__dict__.update(a=1)",
        "self.__dict__['a'] = 1",
        "self.__dict__ = {'a': 1}",
        "self.__dict__.setdefault('a', 1)",
        "def __init__(self):\n    vars(self).update(a=1)",
    ],
}

NOT_FOUND = {
    LITERAL: [
        "f(**options)",
        "f(*names)",
        "f(a=1, **options)",
        "f(**{name: 1})",
        "f(**{'class': 1})",
        "f(**{'encoder.weight': 1})",
        "f(**(defaults | {'a': 1}))",
        "f(**{'a': 1, **options})",
        "f(**{name: getattr(x, name) for name in names})",
        "f(*(g(x) for x in y))",
        "f(*[g(x) for x in y])",
        "f(*text.split())",
        "def g():\n    options = {'a': 1}\n    f(**options)\n    h(**options)",
        "def g():\n    options = {'a': 1}\n    options['b'] = 2\n    f(**options)",
        "def g():\n    options = {'a': 1}\n    options |= {'b': 2}\n    f(**options)",
        "def g():\n    options = {'a': 1}\n    f(options)",
        "def g():\n    words = ['--quiet'] if quiet else []\n    f('train', *words)",
        "def g():\n    sizes = 1, 2\n    f(*sizes, sum(sizes))",
        "def g(sizes):\n    f(*sizes)",
        "A = ('a', 'b')\nB = (*A, 'c')\nC = (*A, 'd')",
        "first, *rest = 1, 2, 3",
        "def g():\n    global A\n    A = {'a': 1}\n    f(**A)",
    ],
    ROWS: [
        "rooms = (*names, 'a')",
        "rooms = [*('x' + name for name in names)]",
        "rooms = [*names, *([extra] if extra else [])]",
        "rooms = [('a', 'b'), ('c', 'd')]",
        "first, *(second, third) = rooms",
    ],
    LOCALS: ["locals", "x.locals", "frame.f_locals"],
    CONDITIONAL: [
        "y = 1 if a else 2",
        "y = (1 if a else 2) + (3 if b else 4)",
        "y = (lambda: 1 if a else 2) if b else 3",
        "y = [1 if a else 2 for a in x] if b else []",
        "y = f(1 if a else 2) if b else 3",
        "if a:\n    y = 1 if b else 2",
    ],
    PARTIAL: [
        "def g():\n    call = partial(f, 1)\n    return call",
        "def g():\n    return partial(f, 1)",
        "f(partial(g, 1))",
        "TABLE = {'a': partial(f, 1)}",
        "def g(self):\n    self.x = h(partial(f, 1))",
        "class A:\n    def b(self):\n        call = partial(c, 1)\n        return call()",
        "rate = partially(number)",
    ],
    VARS: [
        "state = vars(self)",
        "state = dict(self.__dict__)",
        "vars(self)['a']",
        "self.__dict__.get('a')",
        "twin.__dict__ = layer.__dict__",
        "table.update(a=1)",
        "vars()['a'] = 1",
        "def __setstate__(self, state):\n    vars(self).update(state)",
        "def __setstate__(self, state):\n    self.__dict__['a'] = state",
        "def __set__(self, owner, value):\n    vars(owner)[self.name] = value",
    ],
}


def pairs(table):
    return [(kind, source) for kind, sources in table.items() for source in sources]


@pytest.mark.parametrize(("kind", "source"), pairs(FOUND))
def test_a_trick_is_found_once(kind, source):
    assert [kind_of_trick for _, kind_of_trick in tricks.tricks(source)] == [kind]


@pytest.mark.parametrize(("kind", "source"), pairs(NOT_FOUND))
def test_what_looks_like_a_trick_is_not_found(kind, source):
    assert tricks.tricks(source) == []


def test_each_kind_has_cases():
    assert set(FOUND) == set(NOT_FOUND) == set(KINDS)


def test_tricks_come_with_their_lines_in_order():
    source = "x = 1\nf(locals())\nf(**{'a': 1})\ny = 1 if a else 2 if b else 3\n"
    assert tricks.tricks(source) == [(2, LOCALS), (3, LITERAL), (4, CONDITIONAL)]


def test_a_constant_that_other_files_import_is_not_used_once():
    source = "A = ('a', 'b')\nB = (*A, 'c')"
    assert tricks.tricks(source) == [(1, LITERAL)]
    assert tricks.tricks(source, imported_elsewhere={"A"}) == []
    assert tricks.names_imported_by("from x import A as B\nimport y\ny.C") == {"A", "C"}


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a trick in a file, and one in a file below it."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.py").write_text("\nf(locals())\n", "utf-8")
    (tmp_path / "b.py").write_text("f(**{'a': 1})\n", "utf-8")
    return tmp_path


def test_tricks_in_a_folder_are_listed(folder, capsys):
    tricks.run([str(folder)])
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"{folder}/b.py:1: {LITERAL}", f"{folder}/folder/a.py:2: {LOCALS}"]


def test_tricks_in_a_file_are_listed(folder, capsys):
    tricks.run([str(folder / "b.py")])
    assert capsys.readouterr().out.splitlines() == [f"{folder}/b.py:1: {LITERAL}"]
