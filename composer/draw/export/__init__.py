"""A scene as a file: SVG, HTML, PNG, PDF, DOT, Mermaid."""
