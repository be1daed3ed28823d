"""What one company does to others: a class for each attack, who makes it ready, and the process that does it."""
