"""`docs.v1.DocsSearch` in this process."""

from __future__ import annotations

from sandbridge_docsearch.catalogue import Catalogue
from sandbridge_kit.ports.docs import SearchAnswer, SearchRequest


class CatalogueSearch:
    """Answers from the catalogue of now. Replacing it disturbs no search that is under way."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue that the next search uses."""
        return self._catalogue

    def replace(self, catalogue: Catalogue) -> None:
        """Use another catalogue from the next search on."""
        self._catalogue = catalogue

    async def search(self, request: SearchRequest) -> SearchAnswer:
        """Answer one question; raises `invalid_arguments` for a filter that names nothing."""
        return self._catalogue.search(request)
