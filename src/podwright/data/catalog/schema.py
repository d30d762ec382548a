"""The tables of a generation, and the names that filters have for what is in them. Pure: SQL as text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import takewhile

from podwright.data.tree.layouts import Layout, TypedColumn, sort_columns
from podwright.data.tree.roots import Roots, is_address
from podwright.spec.filter_fields import Field, Kind, Vocabulary

FORMAT = 4
"""Of a generation's file; one of another format is scanned anew."""
_NUMBERED = 4_000_000
_TYPES = {"text": "VARCHAR", "whole": "BIGINT"}
_FILE_TYPES = "CASE mode & 61440 WHEN 32768 THEN 'file' WHEN 40960 THEN 'link' ELSE 'special' END"
FIELDS: tuple[tuple[str, Kind, str], ...] = (
    ("path", "text", "(d.path || f.name)"),
    ("folder", "folder", "d.path"),
    ("name", "text", "f.name"),
    ("ext", "text", "f.ext"),
    ("type", "text", "f.type"),
    ("size", "size", "f.size"),
    ("mtime", "time", "f.mtime_ns"),
    ("owner", "text", "f.owner"),
    ("group", "text", 'f."group"'),
    ("mode", "mode", "f.mode"),
    ("sha256", "text", "f.sha256"),
)
"""What every dataset has, whatever its layout: name, kind of its values, SQL."""


PATH_BYTES = "coalesce(d.raw, encode(d.path)) || coalesce(f.raw, encode(f.name))"
"""The SQL of a file's path below the root, as bytes."""


def quoted(name: str) -> str:
    """Return a name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


def class_column(index: int) -> str:
    """Return the column of a class in the table of labels; names of classes may be anything, places are not."""
    return f"c{index}"


def vocabulary_of(
    dataset: str, layout: Layout, classes: Sequence[str], pending: Sequence[str], tags: Sequence[str]
) -> Vocabulary:
    """Return the names that filters of a dataset may use; a class or tag never hides a column."""
    fields = {name: Field(name, "tag", "") for name in tags}
    fields |= {name: Field(name, "count", f"l.{class_column(index)}") for index, name in enumerate(classes)}
    fields |= {column.name: Field(column.name, column.kind, f"f.{quoted(column.name)}") for column in layout.columns}
    fields |= {name: Field(name, kind, sql) for name, kind, sql in FIELDS}
    order = [name for name, _, _ in FIELDS] + [column.name for column in layout.columns]
    ordered = {name: fields.pop(name) for name in order}
    return Vocabulary(dataset, ordered | fields, pending)


def share_query(every: int) -> str:
    """Return the query for the share of files whose path fits a pattern, of every so many files, told by their names.

    The number is no value of the query: where DuckDB does not know it beforehand, this takes ten times as long.
    """
    return f"""SELECT coalesce(avg(regexp_matches(d.name || f.name, ?)::INT), 0.0)
        FROM staged_file f JOIN staged_folder d USING (folder) WHERE hash(f.name) % {every} = 0"""


def build_statements(layout: Layout, labels: Sequence[str] = ()) -> Iterator[str]:
    """Yield what makes the tables of a generation out of what a walk staged, sorted as it is asked for.

    `labels` are those of further roots: a layout reads what is behind them. Files are not numbered yet.
    """
    yield placed_statement(layout, labels)
    order = ", ".join(["_place", *map(quoted, sort_columns(layout)[len(_leading(layout)) :]), "dir", "name"])
    # Not by `row_number`: that goes through all rows in one thread, and the table would be written by that one.
    yield f"""CREATE TABLE file AS
        SELECT NULL::BIGINT AS id, * EXCLUDE (_place) FROM ({columns_query(layout)} ORDER BY {order})"""
    yield """CREATE TABLE directory AS
        SELECT p._dir AS id, d.name AS path, d.raw, d.mode & 4095 AS mode, u.name AS owner, g.name AS "group",
            d.mtime_ns, d.ctime_ns, d.inode, d.uid::UINTEGER AS uid, d.gid::UINTEGER AS gid, d.acl
        FROM staged_folder d JOIN placed p ON p._staged = d.folder
        JOIN user_name u ON u.id = d.uid JOIN group_name g ON g.id = d.gid
        ORDER BY p._dir"""
    yield "DROP TABLE placed"
    yield "CREATE TABLE class (place INTEGER, name VARCHAR, colour VARCHAR)"
    yield "CREATE TABLE tag (file BIGINT, name VARCHAR, value VARCHAR)"


def number_statements(files: int, portion: int = _NUMBERED) -> Iterator[str]:
    """Yield what numbers so many files in their order; not all at once, as what is not written yet takes memory."""
    for first in range(0, files, portion):
        yield f"UPDATE file SET id = rowid WHERE rowid >= {first} AND rowid < {first + portion}"
        yield "CHECKPOINT"


def placed_statement(layout: Layout, labels: Sequence[str] = ()) -> str:
    """Return what numbers folders by their paths, reads their columns, and ranks them by those that lead the order."""
    columns = [column for column in layout.columns if column.part == "folder"]
    typed = "".join(f", {_typed(column, 'path')} AS {quoted(column.name)}" for column in columns)
    if any(column.part == "path" for column in layout.columns):
        typed += ", path AS _path"
    leading = ", ".join(quoted(column.name) for column in _leading(layout)) or "NULL"
    path = f"regexp_replace(name, '{_label_pattern(labels)}', '')" if labels else "name"
    return f"""CREATE TEMP TABLE placed AS SELECT *, dense_rank() OVER (ORDER BY {leading}) AS _place
        FROM (SELECT row_number() OVER () - 1 AS _dir, folder AS _staged{typed}
            FROM (SELECT {path} AS path, folder FROM staged_folder ORDER BY name))"""


def _label_pattern(labels: Sequence[str]) -> str:
    """Return the regular expression of paths of further roots, whose labels may hold dots."""
    return f"^({'|'.join(label.replace('.', '[.]') for label in labels)})/"


def _label_of(path: str, labels: Sequence[str]) -> str:
    """Return the SQL of the label that a path begins with; empty in the first root."""
    return f"regexp_extract({path}, '{_label_pattern(labels)}', 1)"


def columns_query(layout: Layout) -> str:
    """Return the query for all columns of files, and for the rank of their folders among the others."""
    typed = "".join(f", {_source(column)} AS {quoted(column.name)}" for column in layout.columns)
    return f"""SELECT d._dir AS dir, f.name, f.raw,
            lower(regexp_extract(f.name, '[^.]\\.([A-Za-z0-9_]{{1,16}})$', 1)) AS ext,
            {_FILE_TYPES.replace("mode", "f.mode")} AS type, f.size, f.mtime_ns, f.ctime_ns, f.inode,
            u.name AS owner, g.name AS "group", f.mode & 4095 AS mode, NULL::VARCHAR AS sha256,
            f.uid::UINTEGER AS uid, f.gid::UINTEGER AS gid{typed}, d._place
        FROM staged_file f JOIN placed d ON d._staged = f.folder
        JOIN user_name u ON u.id = f.uid JOIN group_name g ON g.id = f.gid"""


def _leading(layout: Layout) -> list[TypedColumn]:
    """Return the columns of folders that rows are sorted by before any of a file's own."""
    return list(takewhile(lambda column: column.part == "folder", layout.columns))


def _source(column: TypedColumn) -> str:
    if column.part == "folder":
        return f"d.{quoted(column.name)}"
    return _typed(column, "f.name" if column.part == "name" else "(d._path || f.name)")


def _typed(column: TypedColumn, source: str) -> str:
    patterns = [f"'{_escaped(pattern)}'" for pattern in column.patterns]
    if column.values:
        cases = []
        for pattern, value in zip(patterns, column.values, strict=True):
            cases.append(f"WHEN regexp_matches({source}, {pattern}) THEN '{_escaped(value)}'")
        return f"CASE {' '.join(cases)} END"
    extracted = ", ".join(f"nullif(regexp_extract({source}, {pattern}, 1), '')" for pattern in patterns)
    if len(patterns) > 1:
        extracted = f"coalesce({extracted})"
    return f"TRY_CAST({extracted} AS {_TYPES[column.kind]})"


def _escaped(text: str) -> str:
    return text.replace("'", "''")


_KINDS = "CASE f.type WHEN 'file' THEN 32768 WHEN 'link' THEN 40960 ELSE 4096 END"
STAGED_AGAIN = (
    """INSERT INTO staging.staged_folder SELECT d.path, d.raw, d.mode + 16384, d.inode, d.uid, d.gid, 0,
        d.mtime_ns, d.ctime_ns, {first} + d.id, d.acl FROM old.directory d WHERE d.id NOT IN (SELECT id FROM gone)""",
    f"""INSERT INTO staging.staged_file SELECT f.name, f.raw, f.mode + {_KINDS}, f.inode, f.uid, f.gid, f.size,
        f.mtime_ns, f.ctime_ns, {{first}} + f.dir, NULL FROM old.file f WHERE f.dir NOT IN (SELECT id FROM gone)""",
)
"""What stages the folders of the old generation that nobody has to look into again."""

CHANGED = """
    WITH old AS (SELECT d.path, f.name, f.size, f.mtime_ns, f.ctime_ns, f.inode, f.mode, f.owner, f."group"
                 FROM old.file f JOIN old.directory d ON d.id = f.dir),
         new AS (SELECT d.path, f.name, f.size, f.mtime_ns, f.ctime_ns, f.inode, f.mode, f.owner, f."group"
                 FROM file f JOIN directory d ON d.id = f.dir)
    SELECT count(*) FROM old FULL JOIN new USING (path, name)
    WHERE (old.size, old.mtime_ns, old.ctime_ns, old.inode, old.mode, old.owner, old."group")
        IS DISTINCT FROM (new.size, new.mtime_ns, new.ctime_ns, new.inode, new.mode, new.owner, new."group")"""
"""How many files came, went, or are not what they were."""


def same_files(moved: bool) -> str:
    """Return what makes the table of which file of the old generation each file is.

    Its labels and checksum hold only where nobody has touched it; of a tree that lies elsewhere now sizes tell.
    """
    facts = ("size",) if moved else ("size", "mtime_ns", "ctime_ns", "inode")
    untouched = " AND ".join(f"o.{fact} = f.{fact}" for fact in facts)
    return f"""CREATE TEMP TABLE same AS SELECT o.id AS old_id, f.id AS id, {untouched} AS untouched
        FROM file f JOIN directory d ON d.id = f.dir
        JOIN old.directory e ON e.path = d.path JOIN old.file o ON o.dir = e.id AND o.name = f.name"""


def renamed_files(roots: Roots) -> str:
    """Return what adds files that were renamed: the old path is gone, and exactly one candidate is the same file.

    So an inode, or the version of an object, that two files have in either generation tells nothing: those are hard
    links or copies. Of several roots a file is looked for in its own.
    """
    timed, root = "" if is_address(roots.first) else "AND o.mtime_ns = f.mtime_ns", "''"
    if roots.labelled:
        root = _label_of("d.path", roots.labels)
        remote = ", ".join(f"'{label}'" for label, place in roots if is_address(place))
        timed = f"AND (o.mtime_ns = f.mtime_ns OR f.root IN ({remote or 'NULL'})) AND o.root = f.root"
    return f"""INSERT INTO same
        WITH gone AS (SELECT f.*, {root} AS root FROM old.file f JOIN old.directory d ON d.id = f.dir
                WHERE f.type = 'file' AND f.id NOT IN (SELECT old_id FROM same)),
            came AS (SELECT f.*, {root} AS root FROM file f JOIN directory d ON d.id = f.dir
                WHERE f.type = 'file' AND f.id NOT IN (SELECT id FROM same)),
            pair AS (SELECT o.id AS old_id, f.id AS id, f.inode FROM gone o JOIN came f
                ON o.inode = f.inode AND o.size = f.size {timed}),
            seen AS (SELECT inode FROM old.file SEMI JOIN pair USING (inode) GROUP BY inode HAVING count(*) > 1
                UNION SELECT inode FROM file SEMI JOIN pair USING (inode) GROUP BY inode HAVING count(*) > 1)
        SELECT old_id, id, true FROM pair WHERE inode NOT IN (SELECT inode FROM seen) AND inode <> {NO_VERSION}"""


NO_VERSION = int.from_bytes(hashlib.sha256(b"").digest()[:7], "big")
"""What stands for the inode of a file behind an address whose server names no version."""
RENAMED_PATHS = """SELECT coalesce(e.raw, encode(e.path)) || coalesce(o.raw, encode(o.name)), o.size, o.mtime_ns,
        coalesce(d.raw, encode(d.path)) || coalesce(f.raw, encode(f.name)), f.mtime_ns
    FROM same s JOIN old.file o ON o.id = s.old_id JOIN old.directory e ON e.id = o.dir
    JOIN file f ON f.id = s.id JOIN directory d ON d.id = f.dir
    WHERE e.path <> d.path OR o.name <> f.name ORDER BY f.id"""
_GONE = "old.file WHERE type = 'file' AND sha256 IS NOT NULL AND id NOT IN (SELECT old_id FROM same)"
AS_LARGE_AS_GONE = f"""SELECT f.id, {PATH_BYTES}, f.size, f.mtime_ns, f.inode
    FROM file f JOIN directory d ON d.id = f.dir
    WHERE f.type = 'file' AND f.size > 0 AND f.id NOT IN (SELECT id FROM same)
        AND f.size IN (SELECT size FROM {_GONE}) ORDER BY f.id"""
"""Files that came, and may be one that is gone and whose checksum is known."""
RENAMED_BY_CHECKSUM = (
    f"""INSERT INTO same SELECT g.id, a.id, true FROM (SELECT id, sha256 FROM {_GONE}) g JOIN alike a USING (sha256)
        WHERE sha256 IN (SELECT sha256 FROM alike GROUP BY sha256 HAVING count(*) = 1)
            AND sha256 IN (SELECT sha256 FROM old.file GROUP BY sha256 HAVING count(*) = 1)""",
    "UPDATE file SET sha256 = a.sha256 FROM alike a WHERE a.id = file.id",
    "DROP TABLE alike",
)
"""What takes them for the same where exactly one has that content now, and one had it: copies inherit nothing."""


def nothing_left(label: str, labels: Sequence[str]) -> str:
    """Return whether the old generation had files of a root, and neither file nor folder of it is there."""
    inside, top = "true", f"{label}/" if label else ""
    if labels:
        inside = f"{_label_of('e.path', labels)} = '{label}'"
    old = "old.file o JOIN old.directory e ON e.id = o.dir"
    return f"""SELECT EXISTS (SELECT 1 FROM {old} WHERE {inside})
        AND NOT EXISTS (SELECT 1 FROM same s JOIN {old} ON s.old_id = o.id WHERE {inside})
        AND NOT EXISTS (SELECT 1 FROM old.directory e JOIN directory d USING (path)
            WHERE e.path <> '{top}' AND {inside})"""


def moved_sample(size: int) -> str:
    """Return the query for how many files of a sample are not there with the size they had, and for one of them."""
    return f"""WITH sample AS (SELECT o.id, e.path || o.name AS path
            FROM old.file o JOIN old.directory e ON e.id = o.dir
            WHERE o.type = 'file' ORDER BY hash(e.path || o.name) LIMIT {size})
        SELECT count(*), count_if(NOT coalesce(s.untouched, false)),
            min(path) FILTER (NOT coalesce(s.untouched, false))
        FROM sample LEFT JOIN same s ON s.old_id = sample.id"""


BACK_AS_IT_WAS = "f.id NOT IN (SELECT id FROM same) AND (f.size, f.mtime_ns) = (k.size, k.mtime_ns)"
"""Of which files holds what the journal of tags says: those that were away and are what they were."""
TAGS_OF_OLD = """SELECT coalesce(e.raw, encode(e.path)) || coalesce(o.raw, encode(o.name)), o.size, o.mtime_ns,
        t.name, t.value
    FROM old.tag t JOIN old.file o ON o.id = t.file JOIN old.directory e ON e.id = o.dir"""
CARRIED = (
    "INSERT INTO tag SELECT s.id, t.name, t.value FROM old.tag t JOIN same s ON s.old_id = t.file",
    "UPDATE file SET sha256 = o.sha256 FROM same s JOIN old.file o ON o.id = s.old_id"
    " WHERE s.id = file.id AND s.untouched AND o.sha256 IS NOT NULL",
)


def label_table(classes: int) -> str:
    """Return what makes the table of labels: a row for each file that was counted, a column for each class."""
    columns = "".join(f", {class_column(index)} UBIGINT" for index in range(classes))
    return f"CREATE TABLE label (file BIGINT, why VARCHAR, unknown UBIGINT{columns})"


def carried_labels(classes: int) -> tuple[str, ...]:
    """Return what takes over the classes, and the labels of files that nobody has touched."""
    return (
        "INSERT INTO class SELECT * FROM old.class",
        label_table(classes),
        """INSERT INTO label SELECT s.id, l.* EXCLUDE (file)
            FROM old.label l JOIN same s ON s.old_id = l.file WHERE s.untouched""",
    )


def whole_view(layout: Layout, classes: Sequence[str]) -> str:
    """Return what makes the view `files`, in which a person who writes SQL finds all columns under their names."""
    taken = {name for name, _, _ in FIELDS} | {column.name for column in layout.columns}
    columns = [f"{sql} AS {quoted(name)}" for name, kind, sql in FIELDS if kind != "time"]
    columns += ["make_timestamp_ns(f.mtime_ns) AS mtime"]
    columns += [f"f.{quoted(column.name)}" for column in layout.columns]
    for index, name in enumerate(classes):
        if name not in taken:
            columns.append(f"l.{class_column(index)} AS {quoted(name)}")
    labels = " LEFT JOIN label l ON l.file = f.id" if classes else ""
    source = f"file f JOIN directory d ON d.id = f.dir{labels}"
    return f"CREATE OR REPLACE TEMP VIEW files AS SELECT f.id, {', '.join(columns)} FROM {source}"
