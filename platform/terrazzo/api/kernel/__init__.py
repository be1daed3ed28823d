"""What all operations share: dispatch, validation, envelopes, fields, conditions, pages."""
