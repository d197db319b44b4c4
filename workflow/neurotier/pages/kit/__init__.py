"""The kit of all pages: style, text, charts and the HTML around them."""
