"""Pages of grades as Jinja2 templates. What a student wrote, and any other text, is escaped in them."""
