"""A catalog's home in ClickHouse: generations are published there, and many machines ask it what DuckDB answers here."""
