"""What training minimizes: each loss says in one number how far the model is from what is wanted."""
