"""The pure half of search: words, index, ranking, cards and their byte budget."""
