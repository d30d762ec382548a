"""Commands that show what runs do and did."""
