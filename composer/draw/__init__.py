"""Drawings of architectures: from the typed graph to a picture.

Imports go down this list, which a contract of import-linter holds:

- `figure`: a drawing as its user holds it
- `export`: a scene as SVG, HTML, PNG, PDF, DOT or Mermaid
- `build`: the typed graph as a diagram; `layout`: a diagram as a scene
- `passes`: from diagram to diagram
- `diagram`: blocks, frames and edges without places
- `links`: a scene as a graph again; `graphviz_programs`: how Graphviz is called
- `scene`: positioned things; `style`: looks, icons, colors, letters
- `paths`, `wording`: names of things, and numbers as they are written
"""
