"""Rules: who is told what when an event rises or a label opens or closes."""
