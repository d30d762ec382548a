"""A catalog's home in ClickHouse: generations are published there, and others ask it what DuckDB answers here."""
