"""How wide things are that stand side by side, and where they stand: in ranks, in rows, at borders and on skip connections."""
