"""Drawings of architectures: from the typed graph to a picture.

Imports go down this list, which a contract of import-linter holds:

- `figure`: a drawing as its user holds it
- `export`: a scene as SVG, HTML, PNG, PDF, DOT or Mermaid; `fitting`: how much is shown, so that it fits its page
- `build`: the typed graph as a diagram; `layout`: a diagram as a scene
- `passes`: from diagram to diagram
- `diagram`: blocks and frames without places
- `edges`: what they read; `links`: a scene as a graph; `graphviz_programs`: how Graphviz is called
- `scene`: positioned things; `geometry`: areas, texts and icons; `style`: looks, colors, letters
- `about`: what a thing stands for; `paths`, `wording`: names of things, and shapes as they are written
"""
