"""Operations along an axis: running sums, shifts, order, places of an index, values of formulas over axes."""
