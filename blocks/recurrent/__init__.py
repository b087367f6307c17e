"""Recurrent layers and cells: RNN, GRU and LSTM."""
