"""A selection as Croissant 1.0 describes datasets: JSON-LD over the table of its files. Pure."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from podwright.data.selecting.selections import Selection

_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_FIELDS = {
    "split": ("sc:Text", "the split of the selection"),
    "sample": ("sc:Integer", "files with one number are one sample"),
    "role": ("sc:Text", "what the file is to its sample"),
    "path": ("sc:Text", "where the file lies below the root of the dataset"),
    "file": ("sc:Text", "where the file lies"),
    "size": ("sc:Integer", "its bytes"),
    "sha256": ("sc:Text", "its digest, where it is known"),
}


def croissant_of(selection: Selection, table: str, content: bytes) -> dict[str, Any]:
    """Return the document of a selection whose files a table beside it lists."""
    fields = []
    for name, (kind, text) in _FIELDS.items():
        source = {"fileObject": {"@id": table}, "extract": {"column": name}}
        field = {"@type": "cr:Field", "@id": f"files/{name}", "name": name, "description": text}
        fields.append({**field, "dataType": kind, "source": source})
    listing = {
        "@type": "cr:FileObject",
        "@id": table,
        "name": table,
        "contentUrl": table,
        "encodingFormat": "text/csv",
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    records = {"@type": "cr:RecordSet", "@id": "files", "name": "files", "field": fields}
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": selection.name,
        "description": f"A selection of {selection.dataset}, made by Podwright; digest {selection.digest}.",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "datePublished": datetime.fromtimestamp(selection.created_at, UTC).date().isoformat(),
        "version": "1.0.0",
        "distribution": [listing],
        "recordSet": [records],
    }
