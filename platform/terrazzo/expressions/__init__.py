"""The expression language of mappings and calculations: text, tree, compiled function."""
